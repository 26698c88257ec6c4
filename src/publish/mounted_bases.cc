#include "publish/mounted_bases.h"

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

constexpr std::array<std::string_view, 4> kTrees = {"models", "layers", "tensors", "lineage"};
constexpr std::string_view kHub = "hub";
constexpr std::string_view kSnapshots = "snapshots";
constexpr std::size_t kRevisionBytes = 20;  // as Snapshot::first_with

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

// False if the model is not stored.
Result<bool> has_tag(Snapshot& snapshot, std::string_view model, std::string_view tag) {
  const auto row = snapshot.model(model);
  if (!row.ok()) return is_absent(row.error()) ? Result<bool>(false) : Result<bool>(row.error());
  const auto found = snapshot.tag(row->id, tag);
  if (!found.ok() && !is_absent(found.error())) return found.error();
  return found.ok();
}

// MODEL/V/…, where MODEL has as many components as lead to a version. Returns "" for no component.
Result<std::string> in_tree(Snapshot& snapshot, Components rest) {
  std::string name;
  for (const std::string_view part : rest) {
    if (!name.empty()) {
      WEFT_TRY(const bool tagged, has_tag(snapshot, name, part));
      if (tagged || all_digits(part) || part == "latest") return name + "@" + std::string(part);
      name += "/";
    }
    name += part;
  }
  return name;
}

// models--ORG--NAME/snapshots/DIGITS/…; returns "" if no version has such a snapshot.
Result<std::string> in_hub(Snapshot& snapshot, Components rest) {
  const auto named = rest.empty() ? std::nullopt : parse_hub_name(rest[0]);
  if (!named) return std::string();
  if (rest.size() < 3 || rest[1] != kSnapshots) return named->name;
  const auto digest = digest_from_hex(std::string(rest[2]) + std::string(2 * (sizeof(Digest) - kRevisionBytes), '0'));
  if (rest[2].size() != 2 * kRevisionBytes || !digest) return std::string();
  const auto model = snapshot.model(named->name);
  if (!model.ok()) return is_absent(model.error()) ? Result<std::string>(std::string()) : model.error();
  WEFT_TRY(const auto id,
           snapshot.first_with(model->id, std::as_bytes(std::span(digest->bytes)).first(kRevisionBytes)));
  if (!id) return std::string();
  WEFT_TRY(const VersionRow version, snapshot.version(*id));
  return spec_of(version);
}

}  // namespace

Result<std::string> base_at(Snapshot& snapshot, std::span<const std::string> mounts, const std::string& base) {
  const auto below = below_mount(mounts, base);
  if (!below) return base;
  const std::vector<std::string_view> parts = split(*below, '/');
  const Components rest = Components(parts).subspan(1);
  std::string spec;
  if (std::ranges::find(kTrees, parts[0]) != kTrees.end()) {
    WEFT_TRY(spec, in_tree(snapshot, rest));
  } else if (parts[0] == kHub) {
    WEFT_TRY(spec, in_hub(snapshot, rest));
  }
  return spec.empty() ? base : spec;
}

}  // namespace weft
