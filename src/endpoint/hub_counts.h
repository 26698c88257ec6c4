// Counts the requests of the endpoint, for its metrics.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "endpoint/hub_route.h"

namespace weft {

// Any thread.
class HubCounts {
 public:
  // The kinds of requests: those of HubRoute::What, in its order, and the requests that the endpoint does not know.
  static constexpr std::array<std::string_view, 6> kKinds{"info", "tree", "paths", "refs", "file", "other"};
  static constexpr std::array<std::string_view, 4> kClasses{"2xx", "3xx", "4xx", "5xx"};
  static constexpr std::size_t kOther = kKinds.size() - 1;

  void answered(std::size_t kind, int status) {
    const auto at = static_cast<std::size_t>(status / 100);
    if (at >= 2 && at < 2 + kClasses.size()) ++counts_.at(kind).at(at - 2);
  }
  std::uint64_t of(std::size_t kind, std::size_t status_class) const { return counts_.at(kind).at(status_class); }

 private:
  std::array<std::array<std::atomic<std::uint64_t>, kClasses.size()>, kKinds.size()> counts_{};
};

}  // namespace weft
