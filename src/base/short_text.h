// Short forms of times and texts, for lines that people read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace weft {

std::string short_time(std::uint64_t time_ns);    // "2024-05-01 12:00", UTC
std::string first_line(std::string_view text);    // without control characters, cut at 60 bytes
std::string joined_lines(std::string_view text);  // "a\nb\n" as "a; b", without control characters

}  // namespace weft
