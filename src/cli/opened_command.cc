#include "cli/opened_command.h"

#include <fmt/core.h>

namespace weft {

OpenedCommand::OpenedCommand(const CommandEntry& entry, const CliEnvironment& environment)
    : info(entry.info), command(entry.make()), context(environment), options(fmt::format("weft {}", info.name)) {
  command->declare(options);
  if (!info.json.empty()) options.flag("--json", context.json, "print one JSON value, for programs");
  options.flag("-q,--quiet", context.quiet, "print no progress bar and no remarks");
  options.value("--store", "DIR", context.store_option, "the directory of the store; `weft --help` has the default");
  options.flag("--trust-store", context.trust_store, "as root, use the store even if other users can write to it");
  options.flag("-h,--help", help, "print this text");
}

}  // namespace weft
