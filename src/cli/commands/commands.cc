#include "cli/commands/commands.h"

#include <algorithm>

namespace weft {

std::span<const CommandEntry* const> all_commands() {
  static constexpr const CommandEntry* kAll[] = {
      &kImportCommand,
#ifdef WEFT_HUB
      &kPullCommand,
#endif
      &kLsCommand,       &kInfoCommand,    &kMountCommand,      &kUmountCommand,   &kTagCommand,      &kNoteCommand,
      &kMvCommand,       &kDiffCommand,    &kLogCommand,        &kLineageCommand,  &kFindCommand,     &kMatchCommand,
      &kAdviseCommand,   &kExportCommand,  &kRmCommand,         &kUndeleteCommand, &kGcCommand,       &kDuCommand,
      &kFsckCommand,     &kScrubCommand,   &kStatusCommand,     &kCacheCommand,    &kPinCommand,      &kUnpinCommand,
      &kInitCommand,     &kKeygenCommand,  &kCompletionCommand, &kPeersCommand,    &kPrefetchCommand, &kEvictCommand,
      &kStageOutCommand, &kRestoreCommand, &kWaitCommand,       &kWatchCommand,    &kCarryCommand,    &kDebugCommand};
  return kAll;
}

const CommandEntry* command_named(std::string_view name) {
  const auto all = all_commands();
  const auto found = std::ranges::find_if(all, [&](const CommandEntry* entry) { return entry->info.name == name; });
  return found == all.end() ? nullptr : *found;
}

}  // namespace weft
