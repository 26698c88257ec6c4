#include "cli/opened_command.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "base/text.h"

namespace weft {

bool ProgramOption::is(std::string_view word) const {
  return std::ranges::count(split(names, ','), word) > 0;
}

OpenedCommand::OpenedCommand(const CommandEntry& entry, const CliEnvironment& environment)
    : info(entry.info), command(entry.make()), context(environment), options(fmt::format("weft {}", info.name)) {
  command->declare(options);
  if (!info.json.empty()) options.flag("--json", context.json, "print one JSON value, for programs");
  options.flag("-q,--quiet", context.quiet, "print no progress bar and no remarks");
  options.value(std::string(kProgramStore.names), std::string(kProgramStore.placeholder), context.store_option,
                fmt::format("{}; `weft --help` has the default", kProgramStore.help));
  options.flag(std::string(kProgramTrust.names), context.trust_store, kProgramTrust.help);
  options.flag(std::string(kProgramHelp.names), help, kProgramHelp.help);
}

}  // namespace weft
