// The subcommands of this folder, which commands.cc lists with all others.
#pragma once

#include "cli/shared/command.h"

namespace weft {

extern const CommandEntry kBundleCreateCommand;
extern const CommandEntry kBundleImportCommand;
extern const CommandEntry kBundleListCommand;
extern const CommandEntry kCarryCommand;
extern const CommandEntry kPullCommand;  // only in a program with libcurl

}  // namespace weft
