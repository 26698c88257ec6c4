#include "weft/store/publish.h"

#include <array>
#include <utility>

#include <fmt/core.h>

#include "base/text.h"

namespace weft {
namespace {

constexpr std::array<std::pair<Durability, std::string_view>, 3> kNames = {
    {{Durability::memory, "memory"}, {Durability::local, "local"}, {Durability::origin, "origin"}}};

}  // namespace

std::string_view durability_name(Durability durability) {
  for (const auto& [value, name] : kNames)
    if (value == durability) return name;
  return {};
}

Result<Durability> parse_durability(std::string_view text, std::string_view what) {
  for (const auto& [value, name] : kNames)
    if (name == text) return value;
  return Error{Errc::invalid, fmt::format("{}: expected memory, local or origin, got {}", what, printable(text))};
}

}  // namespace weft
