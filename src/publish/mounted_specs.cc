#include "publish/mounted_specs.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <vector>

#include "base/text.h"
#include "weft/names.h"

namespace weft {
namespace {

using Components = std::span<const std::string_view>;

constexpr std::array<std::string_view, 7> kTrees = {"models",  "datasets", "layers",     "tensors",
                                                    "records", "lineage",  "safetensors"};
constexpr std::string_view kHub = "hub";
constexpr std::string_view kSnapshots = "snapshots";
constexpr std::string_view kRefs = "refs";
constexpr std::string_view kMain = "main";
constexpr std::string_view kLatest = "latest";

// Returns the path from the mount on; nothing if no mount has it.
std::optional<std::string> below_mount(std::span<const std::string> mounts, const std::string& path) {
  if (!path.starts_with('/')) return std::nullopt;
  std::string plain = std::filesystem::path(path).lexically_normal().string();
  while (plain.size() > 1 && plain.ends_with('/')) plain.pop_back();
  for (const std::string& mount : mounts)
    if (plain.starts_with(mount + "/")) return plain.substr(mount.size() + 1);
  return std::nullopt;
}

// True if the error says that the store has no such model or tag.
bool is_absent(const Error& error) {
  return error.code == Errc::not_found || error.code == Errc::invalid;
}

// Returns nothing if the model is not stored.
Result<std::optional<ModelRow>> stored_model(Snapshot& snapshot, std::string_view name) {
  auto row = snapshot.model(name);
  if (row.ok()) return std::optional(std::move(row).value());
  return is_absent(row.error()) ? Result<std::optional<ModelRow>>(std::nullopt) : row.error();
}

Result<bool> has_tag(Snapshot& snapshot, const ModelRow& model, std::string_view tag) {
  const auto found = snapshot.tag(model.id, tag);
  if (!found.ok() && !is_absent(found.error())) return found.error();
  return found.ok();
}

// MODEL/V/…, where MODEL has as many components as lead to a version, or to another entry of a stored model. Returns ""
// for no component.
Result<std::string> in_tree(Snapshot& snapshot, Components rest) {
  std::string name;
  for (const std::string_view part : rest) {
    if (!name.empty()) {
      if (all_digits(part) || part == kLatest) return name + "@" + std::string(part);
      WEFT_TRY(const auto model, stored_model(snapshot, name));
      if (model) {
        WEFT_TRY(const bool tagged, has_tag(snapshot, *model, part));
        if (tagged) return name + "@" + std::string(part);
        if (model->live > 0) return name;
      }
      name += "/";
    }
    name += part;
  }
  return name;
}

// Returns the version that a revision of 40 digits names; "" if there is none.
Result<std::string> with_revision(Snapshot& snapshot, const ModelRow& model, std::string_view revision) {
  WEFT_TRY(const auto id, snapshot.with_revision(model.id, revision));
  if (!id) return std::string();
  WEFT_TRY(const VersionRow version, snapshot.version(*id));
  return spec_of(version);
}

// refs/REVISION; returns the revision that `name` is of.
Result<std::string> in_refs(Snapshot& snapshot, const ModelRow& model, std::string_view name) {
  WEFT_TRY(const bool tagged, has_tag(snapshot, model, name));
  if (tagged) return model.name + "@" + std::string(name);
  if (name == kMain) return model.name + "@" + std::string(kLatest);
  if (is_commit_hash(name)) return with_revision(snapshot, model, name);
  return all_digits(name) ? model.name + "@" + std::string(name) : std::string();
}

// models--ORG--NAME/snapshots/DIGITS/… or models--ORG--NAME/refs/REVISION; returns "" if no version has this.
Result<std::string> in_hub(Snapshot& snapshot, Components rest) {
  const auto named = rest.empty() ? std::nullopt : parse_hub_name(rest[0]);
  if (!named) return std::string();
  if (rest.size() < 3) return named->name;
  WEFT_TRY(const auto model, stored_model(snapshot, named->name));
  if (!model) return std::string();
  if (rest[1] == kSnapshots) return with_revision(snapshot, *model, rest[2]);
  return rest[1] == kRefs ? in_refs(snapshot, *model, rest[2]) : Result<std::string>(std::string());
}

}  // namespace

Result<std::optional<std::string>> mounted_spec(Snapshot& snapshot, std::span<const std::string> mounts,
                                                const std::string& path) {
  const auto below = below_mount(mounts, path);
  if (!below) return std::optional<std::string>();
  const std::vector<std::string_view> parts = split(*below, '/');
  const Components rest = Components(parts).subspan(1);
  std::string spec;
  if (std::ranges::find(kTrees, parts[0]) != kTrees.end()) {
    WEFT_TRY(spec, in_tree(snapshot, rest));
  } else if (parts[0] == kHub) {
    WEFT_TRY(spec, in_hub(snapshot, rest));
  }
  return spec.empty() ? std::nullopt : std::optional(std::move(spec));
}

}  // namespace weft
