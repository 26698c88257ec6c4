// A subcommand whose options are declared: its own options, and the options that all commands have.
#pragma once

#include <memory>

#include "cli/shared/command.h"
#include "cli/shared/context.h"
#include "cli/shared/options.h"

namespace weft {

struct OpenedCommand {
  // `entry` and `environment` must live as long as this object.
  OpenedCommand(const CommandEntry& entry, const CliEnvironment& environment);

  const CommandInfo& info;
  const std::unique_ptr<Command> command;
  Context context;
  bool help = false;  // set by --help
  OptionSet options;
};

}  // namespace weft
