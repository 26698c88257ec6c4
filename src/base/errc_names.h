// Names for the kinds of failure, in messages between programs and in JSON.
#pragma once

#include <optional>
#include <string_view>

#include "weft/result.h"

namespace weft {

std::string_view errc_name(Errc code);  // "not_found"
std::optional<Errc> errc_named(std::string_view name);

}  // namespace weft
