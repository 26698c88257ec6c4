// The subcommands of `weft cluster`, and the commands about the health of a cluster, which commands.cc lists
// with all others.
#pragma once

#include "cli/shared/command.h"

namespace weft {

extern const CommandEntry kClusterInitCommand;
extern const CommandEntry kClusterJoinCommand;
extern const CommandEntry kClusterLeaveCommand;
extern const CommandEntry kClusterKeyCommand;
extern const CommandEntry kClusterReconcileCommand;
extern const CommandEntry kClusterTokenCommand;
extern const CommandEntry kHealthCommand;
extern const CommandEntry kNodeDrainCommand;
extern const CommandEntry kNodeListCommand;
extern const CommandEntry kNodeRemoveCommand;

}  // namespace weft
