#include "base/glob.h"

#include <cstddef>

namespace weft {
namespace {

// Matches one byte with a set; `at` is behind the '['. False also if the set does not end.
bool in_set(std::string_view pattern, std::size_t& at, char c) {
  bool negated = at < pattern.size() && pattern[at] == '!';
  if (negated) ++at;
  bool found = false;
  for (bool first = true; at < pattern.size() && (first || pattern[at] != ']'); first = false) {
    char low = pattern[at++];
    char high = low;
    if (at + 1 < pattern.size() && pattern[at] == '-' && pattern[at + 1] != ']') {
      high = pattern[at + 1];
      at += 2;
    }
    found |= low <= c && c <= high;
  }
  if (at >= pattern.size()) return false;
  ++at;
  return found != negated;
}

// Matches one byte of text with the pattern at `at`, which moves on if the byte fits.
bool byte_fits(std::string_view pattern, std::size_t& at, char c) {
  std::size_t next = at + 1;
  bool fits = false;
  if (pattern[at] == '?') {
    fits = true;
  } else if (pattern[at] == '[') {
    fits = in_set(pattern, next, c);
  } else if (pattern[at] == '\\' && next < pattern.size()) {
    fits = pattern[next++] == c;
  } else {
    fits = pattern[at] == c;
  }
  if (fits) at = next;
  return fits;
}

}  // namespace

// On a mismatch, retries from the last '*': earlier ones need no retry.
bool glob_matches(std::string_view pattern, std::string_view text) {
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star = std::string_view::npos;
  std::size_t star_text = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = ++p;
      star_text = t;
    } else if (p < pattern.size() && byte_fits(pattern, p, text[t])) {
      ++t;
    } else if (star != std::string_view::npos) {
      p = star;
      t = ++star_text;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

}  // namespace weft
