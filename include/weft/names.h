// The names of models, tags and versions (base/names.cc).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/result.h"

namespace weft {

// Check names against the grammar; the error says why a name is refused (one line). Model: components of
// [A-Za-z0-9._+-], each starting with a letter or digit, at most 96 bytes, joined by '/', at most 200 bytes in all; no
// component may be "latest" or all digits. Tag: one such component, but not "versions.tsv", a file beside the tags in
// lineage/. MODEL[@V]: V is a number, a tag or "latest".
Status check_model_name(std::string_view name);
Status check_tag_name(std::string_view tag);

// Rules for names in keys and records that come from other nodes and files. The grammar above is stricter.
Status check_key_component(std::string_view text, std::string_view what);  // `what`: "model's name"
Status check_key_tag(std::string_view tag);
Status check_key_name(std::string_view name);

// The kind of a version. Models and data sets share the names, and all versions of one name are of one kind.
enum class VersionKind : std::uint8_t { model, dataset };
std::string_view kind_name(VersionKind kind);  // "model", "data set"

// Splits a name at its last slash: "a/b/c" -> "a/b", "c"; "c" -> "", "c".
std::pair<std::string_view, std::string_view> split_name(std::string_view name);

struct VersionSpec {
  std::string model;
  std::string version;  // "" (latest), digits, or a tag
};
Result<VersionSpec> parse_version_spec(std::string_view text);

std::string spec_of(std::string_view model, std::uint64_t number);  // "org/bert@2"

// Returns the refusal to remove a version that has these tags (Errc::exists).
Error has_tags(std::string_view model, std::uint64_t number, const std::vector<std::string>& tags);

inline constexpr std::string_view kVersionsTable = "versions.tsv";

// Returns the directory of a model or a data set in the Hugging Face hub's cache: "models--org--bert" for "org/bert",
// "datasets--org--c4" for "org/c4". Nothing if the hub refuses the name: more than one '/', a '+', "--", "..", a
// component that ends in '-' or '.', or ".git" at the end (huggingface_hub, validate_repo_id).
std::optional<std::string> hub_name(std::string_view name, VersionKind kind);
struct HubName {
  std::string name;
  VersionKind kind = VersionKind::model;
  bool operator==(const HubName&) const = default;
};
std::optional<HubName> parse_hub_name(std::string_view directory);

// True for the name of a commit, as the hub and its cache's snapshots have it: 40 lowercase hexadecimal digits.
inline constexpr std::size_t kCommitDigits = 40;
bool is_commit_hash(std::string_view text);

}  // namespace weft
