// Where the bytes of a version are when its publish returns.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "weft/result.h"

namespace weft {

enum class Durability : std::uint8_t {
  memory,  // in the page cache of this node; a disk has them soon after. If the machine stops before, they are lost
  local,   // on a disk of this node
  origin,  // on that disk, and at the origin
};

// Called before each piece of background work, some MiB, which it may hold up. An error ends the work.
using FlushPace = std::function<Status()>;

std::string_view durability_name(Durability durability);  // "memory", "local", "origin"
// Errc::invalid: another word; `what` starts the message.
Result<Durability> parse_durability(std::string_view text, std::string_view what);

}  // namespace weft
