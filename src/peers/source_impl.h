// What the files of the PeerSource share.
#pragma once

#include <algorithm>
#include <chrono>
#include <string_view>

#include <fmt/core.h>

#include "peers/source.h"

namespace weft {

inline constexpr std::size_t kPeerTriesMax = 3;                  // peers that are asked for one run
inline constexpr auto kPeersBusyMax = std::chrono::seconds(10);  // that all may have too much to do, and give nothing

inline std::chrono::milliseconds time_left(Deadline deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Deadline::clock::now());
  return std::max(std::chrono::milliseconds(0), left);
}

inline Error nobody_has(std::string_view what) {
  return Error{Errc::not_found, fmt::format("no peer has {}", what)};
}

}  // namespace weft
