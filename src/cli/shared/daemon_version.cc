#include "cli/shared/daemon_version.h"

#include <fmt/core.h>

#include "base/text.h"

namespace weft {

std::string version_problem(const JsonValue& status, const CliEnvironment& environment) {
  const auto version = status.text("weft");
  if (!version.ok() || *version == WEFT_VERSION) return "";
  const auto program = status.text("program");
  return fmt::format(
      "{} is version {}, and {} is version {}: `systemctl restart weftd` after an upgrade, or use the weft "
      "that was installed with that weftd",
      program.ok() ? printable(*program, 1000) : "weftd", printable(*version),
      environment.program.empty() ? "this weft" : environment.program, WEFT_VERSION);
}

}  // namespace weft
