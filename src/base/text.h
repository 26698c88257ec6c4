// Helpers for text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/result.h"

namespace weft {

bool valid_utf8(std::string_view text);  // as RFC 3629: no overlong forms, no surrogates

struct CodePoint {
  char32_t value = 0;
  std::size_t length = 0;  // in bytes; 0: the text is empty or does not begin with UTF-8
};
CodePoint first_code_point(std::string_view text);
bool is_control(char32_t c);  // C0, DEL and C1
// True for control characters, line separators, and marks that change the direction of text: with any of them a name or
// message could overwrite other text on a terminal.
bool steers_terminal(char32_t c);

bool all_digits(std::string_view text);                                      // false if empty
int hex_value(char digit);                                                   // -1 for any other character
std::string_view trimmed(std::string_view text, std::string_view blanks);    // without these characters at both ends
char lower_ascii(char letter);                                               // any other character as it is
std::vector<std::string_view> split(std::string_view text, char separator);  // keeps empty pieces; at least one piece
std::optional<std::uint64_t> parse_u64(std::string_view text);               // decimal digits only, no sign, no wrap
std::optional<double> parse_real(std::string_view text);                     // the whole text; no NaN; -0 is 0
std::string human_bytes(std::uint64_t bytes);                                // "86.7 MiB"
std::string utc_time(std::uint64_t time_ns);                                 // "2024-05-01T12:00:00Z"
// Parses a time in seconds, at most `seconds_max`: "90", "90s", "15m", "2h", "1d".
std::optional<std::uint64_t> parse_time(std::string_view text, std::uint64_t seconds_max);
std::optional<std::uint64_t> parse_bytes(std::string_view text);  // "0", "4096", "20G": powers of 1024, KMGTP
// Returns text for messages: characters that control a terminal and bytes that are not UTF-8 become \xNN. Cuts the text
// at `bytes_max`.
std::string printable(std::string_view text, std::size_t bytes_max = 120);
// Escapes the whole text in the same way, but keeps its line ends and tabs.
std::string printable_lines(std::string_view text);
// Returns the text with each byte but [A-Za-z0-9_.~-] and those of `kept` as %XX, for a URL.
std::string percent_encoded(std::string_view text, std::string_view kept = "");
// Returns the text with the byte of each %XX. Errc::invalid: a '%' without two hexadecimal digits, or a NUL.
Result<std::string> percent_decoded(std::string_view raw);

}  // namespace weft
