// Helpers for the tests of src/swarm.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "swarm/swarm_types.h"
#include "swarm/unit_set.h"

namespace weft::testing {

inline constexpr SwarmTime kStart{std::chrono::hours(100)};

inline UnitSet set_of(std::uint32_t units, std::initializer_list<std::uint32_t> members) {
  UnitSet set(units);
  for (const std::uint32_t unit : members) set.add(unit);
  return set;
}

}  // namespace weft::testing
