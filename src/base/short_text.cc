#include "base/short_text.h"

#include <algorithm>

#include "base/text.h"

namespace weft {

std::string short_time(std::uint64_t time_ns) {
  std::string text = utc_time(time_ns).substr(0, 16);
  std::replace(text.begin(), text.end(), 'T', ' ');
  return text;
}

std::string first_line(std::string_view text) {
  return printable(text.substr(0, text.find('\n')), 60);
}

std::string joined_lines(std::string_view text) {
  std::string out;
  for (const std::string_view line : split(text, '\n'))
    if (!line.empty()) out += (out.empty() ? "" : "; ") + printable(line);
  return out;
}

}  // namespace weft
