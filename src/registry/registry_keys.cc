#include "registry/registry_keys.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/limits.h"
#include "base/text.h"
#include "diskformat/uuid.h"
#include "weft/names.h"

namespace weft {
namespace {

constexpr std::size_t kNumberDigits = 16;
constexpr std::size_t kJoinIdDigits = 32;

Error refused(std::string_view key, std::string_view why) {
  return Error{Errc::invalid, fmt::format("key {}: {}", printable(key), why)};
}

std::optional<std::uint64_t> number_of(std::string_view digits) {
  if (digits.size() != kNumberDigits) return {};
  std::uint64_t number = 0;
  for (char digit : digits) {
    int value = hex_value(digit);
    if (value < 0 || (digit >= 'A' && digit <= 'F')) return {};
    number = number << 4U | static_cast<std::uint64_t>(value);
  }
  if (number == 0 || number > limits::kVersionNumberMax) return {};
  return number;
}

bool is_join_id(std::string_view text) {
  const auto is_digit = [](char digit) { return hex_value(digit) >= 0 && (digit < 'A' || digit > 'F'); };
  return text.size() == kJoinIdDigits && std::ranges::all_of(text, is_digit);
}

// Returns the digits of a claim; "" if the text names none.
std::string_view claim_digits(std::string_view text) {
  const std::string_view digits = text.substr(0, limits::kClaimDigits), place = text.substr(digits.size());
  const auto is_digit = [](char digit) { return hex_value(digit) >= 0 && (digit < 'A' || digit > 'F'); };
  if (digits.size() != limits::kClaimDigits || !std::ranges::all_of(digits, is_digit)) return {};
  if (place.empty() || place == "/last") return digits;
  const bool is_place = place.starts_with("/w/") && place.size() == 3 + kNumberDigits;
  return is_place && std::ranges::all_of(place.substr(3), is_digit) ? digits : std::string_view();
}

std::optional<KeyKind> kind_of(std::string_view letter) {
  constexpr std::pair<std::string_view, KeyKind> kKinds[] = {
      {"m/", KeyKind::head},   {"v/", KeyKind::version}, {"x/", KeyKind::tombstone}, {"t/", KeyKind::tag},
      {"n/", KeyKind::member}, {"b/", KeyKind::barrier}, {"d/", KeyKind::memory},    {"c/", KeyKind::claim},
      {"j/", KeyKind::join},   {"k/", KeyKind::node},    {"p/", KeyKind::purge},     {"s/", KeyKind::share}};
  for (const auto& [text, kind] : kKinds)
    if (text == letter) return kind;
  return {};
}

}  // namespace

RegistryKeys::RegistryKeys(std::string_view prefix, std::string_view cluster)
    : root_(fmt::format("{}/{}/", prefix, cluster)) {}

Status RegistryKeys::check(std::string_view prefix, std::string_view cluster) {
  auto plain = [](char c) { return c > ' ' && c < 0x7f; };
  if (prefix.size() < 2 || prefix.size() > limits::kNameMax || prefix.front() != '/' || prefix.back() == '/' ||
      !std::all_of(prefix.begin(), prefix.end(), plain))
    return Error{Errc::invalid, fmt::format("etcd prefix: expected a path as /weft, got \"{}\"", printable(prefix))};
  if (check_tag_name(cluster).ok()) return {};  // the grammar of one component of a name
  return Error{Errc::invalid,
               fmt::format("cluster: expected a name of letters, digits, '.', '_', '+' and '-', got \"{}\"",
                           printable(cluster))};
}

etcd::Keys RegistryKeys::all(KeyKind kind) const {
  switch (kind) {
    case KeyKind::version:
      return etcd::prefixed(root_ + "v/");
    case KeyKind::head:
      return etcd::prefixed(root_ + "m/");
    case KeyKind::tombstone:
      return etcd::prefixed(root_ + "x/");
    case KeyKind::memory:
      return etcd::prefixed(root_ + "d/");
    case KeyKind::tag:
      return etcd::prefixed(root_ + "t/");
    case KeyKind::node:
      return etcd::prefixed(root_ + "k/");
    case KeyKind::purge:
      return etcd::prefixed(root_ + "p/");
    case KeyKind::share:
      return etcd::prefixed(root_ + "s/");
    default:
      return etcd::prefixed(root_ + "n/");
  }
}

std::string RegistryKeys::head(std::string_view model) const {
  return fmt::format("{}m/{}", root_, model);
}
std::string RegistryKeys::version(std::string_view model, std::uint64_t number) const {
  return fmt::format("{}v/{}@{:016x}", root_, model, number);
}
std::string RegistryKeys::tombstone(std::string_view model, std::uint64_t number) const {
  return fmt::format("{}x/{}@{:016x}", root_, model, number);
}
std::string RegistryKeys::memory(std::string_view model, std::uint64_t number) const {
  return fmt::format("{}d/{}@{:016x}", root_, model, number);
}
std::string RegistryKeys::purge(std::string_view model, std::uint64_t number) const {
  return fmt::format("{}p/{}@{:016x}", root_, model, number);
}
std::string RegistryKeys::tag(std::string_view model, std::string_view tag) const {
  return fmt::format("{}t/{}@{}", root_, model, tag);
}
std::string RegistryKeys::claim_place(std::string_view digits, std::uint64_t lease) const {
  return fmt::format("{}{:016x}", claim_line(digits).begin, lease);
}
etcd::Keys RegistryKeys::versions_of(std::string_view model) const {
  return etcd::prefixed(fmt::format("{}v/{}@", root_, model));
}
etcd::Keys RegistryKeys::tombstones_of(std::string_view model) const {
  return etcd::prefixed(fmt::format("{}x/{}@", root_, model));
}
etcd::Keys RegistryKeys::versions_below(std::string_view model) const {
  return etcd::prefixed(fmt::format("{}v/{}/", root_, model));
}
etcd::Keys RegistryKeys::tags_of(std::string_view model) const {
  return etcd::prefixed(fmt::format("{}t/{}@", root_, model));
}

Result<RegistryKey> RegistryKeys::parse(std::string_view key) const {
  if (!key.starts_with(root_)) return refused(key, fmt::format("expected one below {}", root_));
  std::string_view rest = key.substr(root_.size());
  RegistryKey out;
  if (rest == "meta") return out;
  out.kind = KeyKind::removals;
  if (rest == "r") return out;
  out.kind = KeyKind::collection;
  if (rest == "g") return out;
  out.kind = KeyKind::history;
  if (rest == "h") return out;
  auto kind = kind_of(rest.substr(0, 2));
  if (!kind) return refused(key, "weft has no such keys");
  out.kind = *kind;
  rest.remove_prefix(2);
  if (out.kind == KeyKind::member || out.kind == KeyKind::barrier || out.kind == KeyKind::node ||
      out.kind == KeyKind::share) {
    if (!parse_uuid(rest)) return refused(key, "expected the uuid of a node");
    out.name = rest;
    return out;
  }
  if (out.kind == KeyKind::claim) {
    out.name = claim_digits(rest);
    if (out.name.empty()) return refused(key, "expected the digits of a claim");
    return out;
  }
  if (out.kind == KeyKind::join) {
    if (!is_join_id(rest)) return refused(key, "expected the id of a join token");
    return out;
  }
  auto at = rest.rfind('@');
  out.model = rest.substr(0, at);
  if (Status name = check_model_name(out.model); !name.ok()) return refused(key, name.error().message);
  if (out.kind == KeyKind::head) return at == std::string_view::npos ? Result(out) : refused(key, "expected no '@'");
  if (at == std::string_view::npos) return refused(key, "expected '@'");
  std::string_view last = rest.substr(at + 1);
  if (out.kind == KeyKind::tag) {
    if (Status name = check_tag_name(last); !name.ok()) return refused(key, name.error().message);
    out.name = last;
    return out;
  }
  auto number = number_of(last);
  if (!number) return refused(key, "expected a version's number, 16 hexadecimal digits");
  out.number = *number;
  return out;
}

}  // namespace weft
