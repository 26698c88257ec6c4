// Every subcommand, in the order that `weft --help` shows them.
#pragma once

#include <span>
#include <string_view>

#include "cli/shared/command.h"

namespace weft {

extern const CommandEntry kAdviseCommand;
extern const CommandEntry kCacheCommand;
extern const CommandEntry kCompletionCommand;
extern const CommandEntry kDebugCommand;
extern const CommandEntry kDiffCommand;
extern const CommandEntry kDuCommand;
extern const CommandEntry kEvictCommand;
extern const CommandEntry kExportCommand;
extern const CommandEntry kFindCommand;
extern const CommandEntry kFsckCommand;
extern const CommandEntry kGcCommand;
extern const CommandEntry kImportCommand;
extern const CommandEntry kInfoCommand;
extern const CommandEntry kInitCommand;
extern const CommandEntry kKeygenCommand;
extern const CommandEntry kLineageCommand;
extern const CommandEntry kLogCommand;
extern const CommandEntry kLsCommand;
extern const CommandEntry kMatchCommand;
extern const CommandEntry kMountCommand;
extern const CommandEntry kMvCommand;
extern const CommandEntry kNoteCommand;
extern const CommandEntry kPeersCommand;
extern const CommandEntry kPinCommand;
extern const CommandEntry kPrefetchCommand;
extern const CommandEntry kRestoreCommand;
extern const CommandEntry kRmCommand;
extern const CommandEntry kScrubCommand;
extern const CommandEntry kStageOutCommand;
extern const CommandEntry kStatusCommand;
extern const CommandEntry kTagCommand;
extern const CommandEntry kUmountCommand;
extern const CommandEntry kUndeleteCommand;
extern const CommandEntry kUnpinCommand;
extern const CommandEntry kWaitCommand;
extern const CommandEntry kWatchCommand;

// A name may have two words: "cluster init" is the command init of the group cluster.
std::span<const CommandEntry* const> all_commands();
const CommandEntry* command_named(std::string_view name);  // null if there is none

struct CommandGroup {
  std::string_view name;
  std::string_view summary;  // one line, no full stop
};
std::span<const CommandGroup> all_groups();
const CommandGroup* group_named(std::string_view name);  // null if there is none

// A command or group that a build without its libraries leaves out.
struct OptionalCommand {
  std::string_view name;
  std::string_view libraries;
};
std::span<const OptionalCommand> optional_commands();
// Returns the first word of a command's name if it is of a group; "" for others.
std::string_view group_of(const CommandEntry& entry);

}  // namespace weft
