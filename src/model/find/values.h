// Parses the values of a query.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace weft {

// Parses a number and its optional unit: K, M, G, T (thousands) or Ki, Mi, Gi, Ti (1024s).
std::optional<double> find_number(std::string_view text);
// Parses "2026-11-21", "2026-11-21T16:30", "2026-11-21T16:30:05Z": UTC, as nanoseconds since 1970.
std::optional<std::uint64_t> find_time(std::string_view text);

}  // namespace weft
