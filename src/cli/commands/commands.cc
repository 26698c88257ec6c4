#include "cli/commands/commands.h"

namespace weft {

std::span<const CommandEntry* const> all_commands() {
  static constexpr const CommandEntry* kAll[] = {
      &kImportCommand,   &kLsCommand,      &kInfoCommand,       &kMountCommand,  &kUmountCommand,   &kTagCommand,
      &kNoteCommand,     &kMvCommand,      &kDiffCommand,       &kLogCommand,    &kLineageCommand,  &kFindCommand,
      &kMatchCommand,    &kAdviseCommand,  &kExportCommand,     &kRmCommand,     &kUndeleteCommand, &kGcCommand,
      &kDuCommand,       &kFsckCommand,    &kScrubCommand,      &kStatusCommand, &kCacheCommand,    &kPinCommand,
      &kUnpinCommand,    &kInitCommand,    &kCompletionCommand, &kPeersCommand,  &kPrefetchCommand, &kEvictCommand,
      &kStageOutCommand, &kRestoreCommand, &kWaitCommand,       &kWatchCommand,  &kDebugCommand};
  return kAll;
}

}  // namespace weft
