// The subcommands of `weft cluster`, which commands.cc lists with all others.
#pragma once

#include "cli/shared/command.h"

namespace weft {

extern const CommandEntry kClusterInitCommand;
extern const CommandEntry kClusterJoinCommand;
extern const CommandEntry kClusterLeaveCommand;
extern const CommandEntry kClusterKeyCommand;
extern const CommandEntry kClusterReconcileCommand;
extern const CommandEntry kClusterTokenCommand;

}  // namespace weft
