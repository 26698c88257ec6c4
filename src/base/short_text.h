// Short forms of times and texts, for lines that people read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace weft {

std::string short_time(std::uint64_t time_ns);    // "2024-05-01 12:00Z", UTC
std::string local_time(std::uint64_t time_ns);    // "2024-05-01 14:00", in the time zone of this process
std::string first_line(std::string_view text);    // without control characters, cut at 60 bytes
std::string joined_lines(std::string_view text);  // "a\nb\n" as "a; b", without control characters

// Returns a number with a fraction or an exponent as 4 digits: "0.1235"; any other text as it is.
std::string short_number(std::string_view text);

}  // namespace weft
