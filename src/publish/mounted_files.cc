#include "publish/mounted_files.h"

#include <fmt/core.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include "base/text.h"
#include "os/mounts.h"

namespace weft {
namespace {

constexpr std::array<std::string_view, 3> kGenerated = {"layers", "tensors", "lineage"};

// Parses a device such as "0:52".
std::optional<dev_t> device_of(std::string_view text) {
  const auto parts = split(text, ':');
  if (parts.size() != 2) return std::nullopt;
  const auto high = parse_u64(parts[0]);
  const auto low = parse_u64(parts[1]);
  if (!high || !low) return std::nullopt;
  return makedev(static_cast<unsigned>(*high), static_cast<unsigned>(*low));
}

// A path below the weft mount that shows it.
struct BelowMount {
  std::string mount;
  std::string below;
};
std::optional<BelowMount> below_mount(const std::string& path) {
  const auto mounts = weft_mounts();
  if (!mounts.ok() || mounts->empty()) return std::nullopt;
  std::error_code error;
  const std::string real = std::filesystem::canonical(path, error).string();
  if (error) return std::nullopt;
  for (const WeftMount& mount : *mounts)
    if (real.starts_with(mount.directory + "/"))
      return BelowMount{mount.directory, real.substr(mount.directory.size() + 1)};
  return std::nullopt;
}

}  // namespace

MountedFiles MountedFiles::of(Store& store, ManifestResolver& resolver) {
  MountedFiles out(store, resolver);
  const auto mounts = mounts_of(store.path());
  if (!mounts.ok()) return out;
  for (const WeftMount& mount : *mounts)
    if (const auto device = device_of(mount.device)) out.devices_.push_back(*device);
  return out;
}

Result<const LoadedVersion*> MountedFiles::version(VersionId id) {
  if (const auto known = versions_.find(id); known != versions_.end()) return &known->second;
  VersionRow row;
  {
    WEFT_TRY(const auto snapshot, store_.snapshot());
    WEFT_TRY(row, snapshot->version(id));
  }
  if (row.removed) return nullptr;
  WEFT_TRY(LoadedVersion loaded, load_version(store_, resolver_, row));
  return &versions_.emplace(id, std::move(loaded)).first->second;
}

Result<const File*> MountedFiles::find(const struct stat& seen) {
  if (std::ranges::find(devices_, seen.st_dev) == devices_.end()) return nullptr;
  InodeRow row;
  {
    WEFT_TRY(const auto snapshot, store_.snapshot());
    auto found = snapshot->inode(seen.st_ino);
    if (!found.ok() && found.error().code == Errc::not_found) return nullptr;
    if (!found.ok()) return std::move(found).error();
    row = std::move(found).value();
  }
  if (row.kind != InodeKind::version) return nullptr;
  WEFT_TRY(const LoadedVersion* loaded, version(row.version));
  const std::uint64_t index = seen.st_ino - row.base;
  if (loaded == nullptr || index >= loaded->tree->size()) return nullptr;
  const Node& node = loaded->tree->node(static_cast<std::uint32_t>(index));
  if (!is_published(node.kind)) return nullptr;
  const File& file = loaded->tree->manifest().files[node.file];
  return file.size == static_cast<std::uint64_t>(seen.st_size) ? &file : nullptr;
}

bool is_in_mount(const std::string& path) {
  return below_mount(path).has_value();
}

Result<std::string> published_path(const std::string& path) {
  const auto place = below_mount(path);
  std::error_code ignored;
  if (!place || !std::filesystem::is_directory(path, ignored)) return path;
  const std::string_view tree = std::string_view(place->below).substr(0, place->below.find('/'));
  if (std::ranges::find(kGenerated, tree) == kGenerated.end()) return path;
  const std::string models = place->mount + "/models" + place->below.substr(tree.size());
  if (all_digits(place->below.substr(place->below.rfind('/') + 1)) && std::filesystem::is_directory(models, ignored))
    return models;
  return Error{Errc::invalid, fmt::format("{}: the files in it are generated; expected a version, such as "
                                          "{}/models/MODEL/1",
                                          path, place->mount)};
}

}  // namespace weft
