#include "hub/hub_link.h"

#include <algorithm>

#include "base/text.h"

namespace weft {
namespace {

constexpr std::string_view kSpaces = " \t";

void skip_spaces(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(kSpaces), text.size()));
}

// Removes a value, in quotes or not, from the front of the text, and returns it.
std::string_view next_value(std::string_view& text) {
  const bool is_quoted = text.starts_with('"');
  if (is_quoted) text.remove_prefix(1);
  const auto end = std::min(text.find_first_of(is_quoted ? "\"" : ";, \t"), text.size());
  const std::string_view value = text.substr(0, end);
  text.remove_prefix(std::min(is_quoted ? end + 1 : end, text.size()));
  return value;
}

bool is_relation(std::string_view name, std::string_view value, std::string_view relation) {
  const auto same = [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a + 32 : a) == b; };
  if (!std::ranges::equal(name, std::string_view("rel"), same)) return false;
  return std::ranges::any_of(split(value, ' '),
                             [&](std::string_view one) { return std::ranges::equal(one, relation, same); });
}

// Removes the parameters of one link from the front of the text. True if they name the relation.
bool take_parameters(std::string_view& text, std::string_view relation) {
  bool found = false;
  for (skip_spaces(text); text.starts_with(';'); skip_spaces(text)) {
    text.remove_prefix(1);
    skip_spaces(text);
    const auto end = std::min(text.find_first_of("=;,"), text.size());
    std::string_view name = text.substr(0, end);
    name = name.substr(0, name.find_last_not_of(kSpaces) + 1);
    text.remove_prefix(end);
    if (!text.starts_with('=')) continue;
    text.remove_prefix(1);
    skip_spaces(text);
    found |= is_relation(name, next_value(text), relation);
  }
  return found;
}

}  // namespace

std::optional<std::string_view> link_of(std::string_view field, std::string_view relation) {
  for (;;) {
    skip_spaces(field);
    const auto end = field.find('>');
    if (!field.starts_with('<') || end == std::string_view::npos) return std::nullopt;
    const std::string_view reference = field.substr(1, end - 1);
    field.remove_prefix(end + 1);
    if (take_parameters(field, relation)) return reference;
    if (!field.starts_with(',')) return std::nullopt;
    field.remove_prefix(1);
  }
}

}  // namespace weft
