#include "hub/hub_name.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/limits.h"
#include "base/text.h"

namespace weft {
namespace {

constexpr std::string_view kDatasets = "datasets/";

bool is_alphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

Error refused_text(std::string_view what, std::string_view text, std::string_view why) {
  return Error{Errc::invalid, fmt::format("{} \"{}\": {}", what, printable(text), why)};
}

// Returns the rule that a component of a name breaks; "" if it breaks none.
std::string fault_of(std::string_view component) {
  const auto is_inner = [](char c) { return is_alphanumeric(c) || c == '_' || c == '-' || c == '.'; };
  const auto is_outer = [](char c) { return is_alphanumeric(c) || c == '_'; };
  if (component.empty()) return "expected ORG/NAME or NAME, got an empty component";
  if (component.size() > limits::kHubNameComponentMax)
    return fmt::format("expected components of at most {} bytes, got {}", limits::kHubNameComponentMax,
                       component.size());
  if (!std::ranges::all_of(component, is_inner)) return "expected letters, digits, '.', '_' and '-'";
  if (!is_outer(component.front()) || !is_outer(component.back()))
    return "expected a letter, a digit or '_' at both ends of a component";
  return {};
}

}  // namespace

Status check_hub_name(std::string_view name) {
  constexpr std::string_view kWhat = "hub repository";
  const auto components = split(name, '/');
  if (components.size() > 2)
    return refused_text(kWhat, name, fmt::format("expected ORG/NAME, got {} components", components.size()));
  for (std::string_view component : components)
    if (std::string fault = fault_of(component); !fault.empty()) return refused_text(kWhat, name, fault);
  for (std::string_view part : {"--", ".."})
    if (name.find(part) != std::string_view::npos)
      return refused_text(kWhat, name, fmt::format("expected no \"{}\"", part));
  if (name.ends_with(".git")) return refused_text(kWhat, name, "expected no \".git\" at the end");
  return {};
}

Status check_hub_revision(std::string_view revision) {
  constexpr std::string_view kWhat = "hub revision";
  if (revision.empty()) return refused_text(kWhat, revision, "expected a branch, a tag or a commit, got nothing");
  if (revision.size() > limits::kHubRevisionMax)
    return refused_text(kWhat, revision,
                        fmt::format("expected at most {} bytes, got {}", limits::kHubRevisionMax, revision.size()));
  if (!valid_utf8(revision)) return refused_text(kWhat, revision, "expected UTF-8, got other bytes");
  const auto is_bad = [](char c) {
    return static_cast<unsigned char>(c) <= ' ' || c == 0x7f ||
           std::string_view("~^:?*[\\").find(c) != std::string_view::npos;
  };
  if (const auto bad = std::ranges::find_if(revision, is_bad); bad != revision.end())
    return refused_text(kWhat, revision,
                        fmt::format("git refuses the byte 0x{:02x} in a name",
                                    static_cast<unsigned>(static_cast<unsigned char>(*bad))));
  for (std::string_view component : split(revision, '/'))
    if (component.empty() || component.starts_with('.') || component.ends_with('.') ||
        component.find("..") != std::string_view::npos)
      return refused_text(kWhat, revision, "git refuses empty components, \"..\", and a '.' at either end of one");
  return {};
}

std::optional<std::string> tag_of_revision(std::string_view revision) {
  if (is_commit_hash(revision) || !check_tag_name(revision).ok()) return std::nullopt;
  return std::string(revision);
}

Result<HubSource> parse_hub_source(std::string_view text, VersionKind kind) {
  if (!text.starts_with(kHubScheme))
    return refused_text("hub source", text, "expected hf:ORG/NAME, hf:datasets/ORG/NAME or either with @REVISION");
  std::string_view rest = text.substr(kHubScheme.size());
  HubSource source;
  source.repository.kind = kind;
  if (rest.starts_with(kDatasets)) {
    source.repository.kind = VersionKind::dataset;
    rest.remove_prefix(kDatasets.size());
  }
  const auto at = rest.find('@');
  source.repository.name = rest.substr(0, at);
  WEFT_CHECK(check_hub_name(source.repository.name));
  if (at != std::string_view::npos) {
    source.revision = rest.substr(at + 1);
    WEFT_CHECK(check_hub_revision(source.revision));
  }
  return source;
}

std::string text_of(const HubName& repository) {
  return fmt::format("{}{}{}", kHubScheme, repository.kind == VersionKind::dataset ? kDatasets : "", repository.name);
}

HubUrls::HubUrls(std::string endpoint, const HubName& repository) {
  const bool is_dataset = repository.kind == VersionKind::dataset;
  page_ = fmt::format("{}/{}{}", endpoint, is_dataset ? kDatasets : "", repository.name);
  api_ = fmt::format("{}/api/{}/{}", endpoint, is_dataset ? "datasets" : "models", repository.name);
}

std::string HubUrls::page() const {
  return page_;
}

std::string HubUrls::revision(std::string_view revision) const {
  return fmt::format("{}/revision/{}", api_, percent_encoded(revision));
}

std::string HubUrls::tree(std::string_view revision) const {
  return fmt::format("{}/tree/{}?recursive=true", api_, percent_encoded(revision));
}

std::string HubUrls::file(std::string_view revision, std::string_view path) const {
  return fmt::format("{}/resolve/{}/{}", page_, percent_encoded(revision), percent_encoded(path, "/"));
}

}  // namespace weft
