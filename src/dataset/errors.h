// Errors of a data set's trees.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <string_view>

#include "base/text.h"
#include "weft/result.h"

namespace weft {

inline Error no_node(std::uint64_t number) {
  return {Errc::not_found, fmt::format("no node {} of the data set", number)};
}
inline Error no_name(std::string_view name) {
  return {Errc::not_found, fmt::format("no entry {}", printable(name))};
}
inline Error no_directory(std::uint64_t number) {
  return {Errc::not_dir, fmt::format("node {} of the data set is not a directory", number)};
}

}  // namespace weft
