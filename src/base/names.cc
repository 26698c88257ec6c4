#include "weft/names.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/limits.h"
#include "base/text.h"

namespace weft {
namespace {

bool letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}
bool name_character(char c) {
  return letter_or_digit(c) || std::string_view("._+-").find(c) != std::string_view::npos;
}

Error refused(std::string_view what, std::string_view whole, const std::string& why) {
  return Error{Errc::invalid, fmt::format("{} \"{}\": {}", what, printable(whole), why)};
}

// Returns the rule that `component` breaks, with the actual text; "" if it breaks none.
std::string component_fault(std::string_view component) {
  if (component.empty()) return "expected a name, got an empty one";
  if (component.size() > limits::kModelComponentMax)
    return fmt::format("expected at most {} bytes, got {}", limits::kModelComponentMax, component.size());
  if (!letter_or_digit(component[0]))
    return fmt::format("expected a letter or digit first, got \"{}\"", printable(component));
  auto bad = std::find_if_not(component.begin(), component.end(), name_character);
  if (bad != component.end())
    return fmt::format("expected letters, digits, '.', '_', '+' and '-', got byte 0x{:02x}",
                       static_cast<unsigned char>(*bad));
  if (component == "latest") return "expected another name than \"latest\", which names the newest version";
  if (all_digits(component)) return fmt::format("expected more than digits, got {}: numbers name versions", component);
  return {};
}

}  // namespace

Status check_model_name(std::string_view name) {
  if (name.size() > limits::kModelNameMax)
    return refused("model name", name,
                   fmt::format("expected at most {} bytes, got {}", limits::kModelNameMax, name.size()));
  for (std::string_view component : split(name, '/')) {
    std::string fault = component_fault(component);
    if (!fault.empty()) return refused("model name", name, fault);
  }
  return {};
}

Status check_tag_name(std::string_view tag) {
  std::string fault = component_fault(tag);
  if (tag == kVersionsTable) fault = fmt::format("expected another name than \"{}\", which names a file", tag);
  if (!fault.empty()) return refused("tag", tag, fault);
  return {};
}

std::pair<std::string_view, std::string_view> split_name(std::string_view name) {
  std::size_t slash = name.rfind('/');
  if (slash == std::string_view::npos) return {"", name};
  return {name.substr(0, slash), name.substr(slash + 1)};
}

Result<VersionSpec> parse_version_spec(std::string_view text) {
  auto at = text.find('@');
  VersionSpec spec{std::string(text.substr(0, at)), {}};
  WEFT_CHECK(check_model_name(spec.model));
  if (at == std::string_view::npos) return spec;
  std::string_view version = text.substr(at + 1);
  if (version == "latest") return spec;
  if (all_digits(version)) {
    if (version[0] == '0' || !parse_u64(version))
      return refused("version", text, fmt::format("expected a number from 1 on, got \"{}\"", printable(version)));
  } else if (std::string fault = component_fault(version); !fault.empty()) {
    return refused("version", text, fmt::format("after '@' a number, a tag or \"latest\": {}", fault));
  }
  spec.version = version;
  return spec;
}

std::string_view kind_name(VersionKind kind) {
  return kind == VersionKind::dataset ? "data set" : "model";
}

std::string spec_of(std::string_view model, std::uint64_t number) {
  return fmt::format("{}@{}", model, number);
}

Error has_tags(std::string_view model, std::uint64_t number, const std::vector<std::string>& tags) {
  return Error{Errc::exists, fmt::format("{} has the tag {}{}: `weft tag -d {} {}` first, or --force",
                                         spec_of(model, number), printable(tags.front()),
                                         tags.size() == 1 ? "" : fmt::format(" and {} more", tags.size() - 1), model,
                                         printable(tags.front()))};
}

namespace {

constexpr std::string_view kHubSlash = "--";

constexpr std::string_view hub_prefix(VersionKind kind) {
  return kind == VersionKind::dataset ? "datasets--" : "models--";
}

bool hub_takes(std::string_view component) {
  if (component.empty() || component.find('+') != std::string_view::npos) return false;
  return !component.ends_with('-') && !component.ends_with('.');
}

}  // namespace

std::optional<std::string> hub_name(std::string_view name, VersionKind kind) {
  if (!check_model_name(name).ok()) return std::nullopt;
  if (name.find("--") != std::string_view::npos || name.find("..") != std::string_view::npos) return std::nullopt;
  const auto components = split(name, '/');
  if (components.size() > 2 || !std::ranges::all_of(components, hub_takes) || name.ends_with(".git"))
    return std::nullopt;
  std::string out = fmt::format("{}{}", hub_prefix(kind), components[0]);
  if (components.size() == 2) out += fmt::format("{}{}", kHubSlash, components[1]);
  return out;
}

std::optional<HubName> parse_hub_name(std::string_view directory) {
  for (const VersionKind kind : {VersionKind::model, VersionKind::dataset}) {
    if (!directory.starts_with(hub_prefix(kind))) continue;
    std::string name(directory.substr(hub_prefix(kind).size()));
    if (const auto slash = name.find(kHubSlash); slash != std::string::npos) name.replace(slash, kHubSlash.size(), "/");
    if (hub_name(name, kind) == directory) return HubName{std::move(name), kind};
  }
  return std::nullopt;
}

bool is_commit_hash(std::string_view text) {
  return text.size() == kCommitDigits && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

Status check_key_component(std::string_view text, std::string_view what) {
  if (!text.empty() && text.size() <= limits::kModelComponentMax && text.find('\0') == std::string_view::npos &&
      text.find('/') == std::string_view::npos && text != "latest" && !all_digits(text))
    return {};
  return Error{Errc::invalid, fmt::format("\"{}\" cannot be part of a {}", printable(text), what)};
}

Status check_key_tag(std::string_view tag) {
  if (tag != kVersionsTable) return check_key_component(tag, "tag");
  return Error{Errc::invalid, fmt::format("\"{}\" cannot be a tag: a file has this name", tag)};
}

Status check_key_name(std::string_view name) {
  if (name.size() > limits::kModelNameMax)
    return Error{Errc::invalid,
                 fmt::format("a model's name: expected at most {} bytes, got {}", limits::kModelNameMax, name.size())};
  for (std::string_view component : split(name, '/')) WEFT_CHECK(check_key_component(component, "model's name"));
  return {};
}

}  // namespace weft
