#include <algorithm>
#include <array>

#include "weft/bytes/cold.h"

namespace weft {
namespace {

constexpr std::array<std::string_view, 3> kPolicies{"auto", "stream", "fetch"};  // in the order of ColdPolicy

}  // namespace

std::string_view name_of(ColdPolicy policy) {
  return kPolicies[static_cast<std::size_t>(policy)];
}

std::optional<ColdPolicy> cold_policy_named(std::string_view name) {
  const auto found = std::find(kPolicies.begin(), kPolicies.end(), name);
  if (found == kPolicies.end()) return std::nullopt;
  return static_cast<ColdPolicy>(found - kPolicies.begin());
}

}  // namespace weft
