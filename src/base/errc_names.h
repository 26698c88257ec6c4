// The kinds of failure as words: what one program tells another, and JSON says.
#pragma once

#include <optional>
#include <string_view>

#include "weft/result.h"

namespace weft {

std::string_view errc_name(Errc code);  // "not_found"
std::optional<Errc> errc_named(std::string_view name);

}  // namespace weft
