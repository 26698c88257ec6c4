#include "cli/commands/commands.h"

#include <algorithm>

#ifdef WEFT_CLUSTER
#include "cli/cluster/cluster_commands.h"
#endif
#include "cli/transfer/transfer_commands.h"

namespace weft {

std::span<const CommandEntry* const> all_commands() {
  static constexpr const CommandEntry* kAll[] = {&kImportCommand,
#ifdef WEFT_HUB
                                                 &kPullCommand,
#endif
                                                 &kLsCommand,           &kInfoCommand,
                                                 &kMountCommand,        &kUmountCommand,
                                                 &kTagCommand,          &kNoteCommand,
                                                 &kMvCommand,           &kDiffCommand,
                                                 &kLogCommand,          &kLineageCommand,
                                                 &kFindCommand,         &kMatchCommand,
                                                 &kAdviseCommand,       &kExportCommand,
                                                 &kBundleCreateCommand, &kBundleImportCommand,
                                                 &kBundleListCommand,   &kRmCommand,
                                                 &kUndeleteCommand,     &kGcCommand,
                                                 &kDuCommand,           &kFsckCommand,
                                                 &kScrubCommand,        &kStatusCommand,
                                                 &kCacheCommand,        &kPinCommand,
                                                 &kUnpinCommand,        &kInitCommand,
                                                 &kKeygenCommand,       &kCompletionCommand,
                                                 &kPeersCommand,        &kPrefetchCommand,
                                                 &kEvictCommand,        &kStageOutCommand,
                                                 &kRestoreCommand,      &kWaitCommand,
                                                 &kWatchCommand,        &kCarryCommand,
#ifdef WEFT_CLUSTER
                                                 &kHealthCommand,       &kNodeListCommand,
                                                 &kNodeDrainCommand,    &kNodeRemoveCommand,
                                                 &kClusterInitCommand,  &kClusterJoinCommand,
                                                 &kClusterTokenCommand, &kClusterLeaveCommand,
                                                 &kClusterKeyCommand,   &kClusterReconcileCommand,
#endif
                                                 &kDebugCommand};
  return kAll;
}

std::span<const CommandGroup> all_groups() {
  static constexpr CommandGroup kGroups[] = {
      {"bundle", "move versions between stores in a file, or back up a store"},
#ifdef WEFT_CLUSTER
      {"cluster", "make a cluster, add or remove this node, change the key"},
      {"node", "list the nodes of a cluster, drain a node, remove an absent one"},
#endif
  };
  return kGroups;
}

std::span<const OptionalCommand> optional_commands() {
  constexpr std::string_view of_weftd = "the libraries of weftd";
  static constexpr OptionalCommand kOptional[] = {
      {"pull", "libcurl"}, {"cluster", of_weftd}, {"health", of_weftd}, {"node", of_weftd}};
  return kOptional;
}

const CommandGroup* group_named(std::string_view name) {
  const auto groups = all_groups();
  const auto found = std::ranges::find(groups, name, &CommandGroup::name);
  return found == groups.end() ? nullptr : &*found;
}

std::string_view group_of(const CommandEntry& entry) {
  const auto blank = entry.info.name.find(' ');
  return blank == std::string_view::npos ? std::string_view() : entry.info.name.substr(0, blank);
}

const CommandEntry* command_named(std::string_view name) {
  const auto all = all_commands();
  const auto found = std::ranges::find_if(all, [&](const CommandEntry* entry) { return entry->info.name == name; });
  return found == all.end() ? nullptr : *found;
}

}  // namespace weft
