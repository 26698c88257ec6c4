#include "weft/store/repair.h"

#include <fcntl.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/core.h>

#include "base/text.h"
#include "diskformat/pack_names.h"
#include "origin/dir.h"
#include "os/sys.h"
#include "os/tree_walk.h"
#include "weft/model/manifest.h"
#include "weft/programs/operations.h"
#include "weft/store/walk.h"

namespace weft {
namespace {

constexpr std::size_t kHoldersAtEachEnd = 32;  // holders of a blob to use, from each end of the list
constexpr std::size_t kTensorsNamed = 3;
constexpr std::size_t kEntriesMax = 1U << 20U;  // searched in a directory tree
constexpr std::size_t kComponentsMax = 256;     // of the path of such an entry

// Leaves out directories that this user cannot read, that are too deep, or that are removed meanwhile.
Status pass_unreadable(const Error& error) {
  const bool passed = error.code == Errc::permission || error.code == Errc::invalid || error.code == Errc::not_found;
  return passed ? Status{} : Status{error};
}

// A published file that contains a blob.
struct Use {
  VersionRow version;
  const Manifest* manifest = nullptr;
  const File* file = nullptr;
};

// Manifests of versions, each decoded once.
class ManifestCache {
 public:
  explicit ManifestCache(Store& store) : store_(store) {}

  // Returns null if the manifest is not on this node or cannot be read.
  const Manifest* of(const VersionRow& version) {
    const auto [at, fresh] = known_.try_emplace(version.manifest);
    if (!fresh) return at->second.get();
    const auto bytes = store_.open_manifest(version.manifest);
    if (!bytes.ok()) return nullptr;
    auto manifest = decode_manifest((*bytes)->bytes());
    if (manifest.ok()) at->second = std::make_unique<const Manifest>(*std::move(manifest));
    return at->second.get();
  }

 private:
  Store& store_;
  std::map<Digest, std::unique_ptr<const Manifest>> known_;
};

// Returns none if the index is damaged there: the caller reports that damage, and goes on.
Result<std::vector<Use>> uses_of(Store& store, ManifestCache& manifests, const ContentId& id) {
  auto found = some_holding_files(store, id, kHoldersAtEachEnd);
  if (!found.ok() && found.error().code == Errc::corrupt) return std::vector<Use>();
  WEFT_TRY(auto holders, std::move(found));
  std::vector<Use> uses;
  for (auto& [version, file] : holders) {
    const Manifest* manifest = manifests.of(version);
    if (manifest == nullptr || file >= manifest->files.size()) continue;
    uses.push_back({std::move(version), manifest, &manifest->files[file]});
  }
  return uses;
}

// True if a tensor of `file` has bytes in the blob `id` of use.file.
bool lies_in(const Use& use, const File& file, const Tensor& tensor, const ContentId& id) {
  if (tensor.extent != kNoExtent) return &file == use.file && file.extents[tensor.extent].id == id;
  return std::ranges::any_of(tensor.runs, [&](const TensorRun& run) {
    return &use.manifest->files[run.file] == use.file && use.file->extents[run.extent].id == id;
  });
}

void name_tensors(const Use& use, const ContentId& id, AffectedFile& affected) {
  for (const File& file : use.manifest->files)
    for (const Tensor& tensor : file.tensors) {
      if (!lies_in(use, file, tensor, id)) continue;
      if (affected.tensors.size() < kTensorsNamed)
        affected.tensors.push_back(tensor.name);
      else
        ++affected.more_tensors;
    }
}

// One run of search_blobs().
class Search {
 public:
  Search(Store& store, std::vector<DamagedBlob> blobs, const TakeBlob& take, Progress& progress)
      : store_(store), wanted_(std::move(blobs)), take_(take), progress_(progress), manifests_(store) {}

  Status find_files() {
    std::set<std::tuple<std::uint64_t, ContentId, std::uint64_t>> seen;
    for (const DamagedBlob& blob : wanted_) {
      WEFT_TRY(const auto uses, uses_of(store_, manifests_, blob.id));
      for (const Use& use : uses) {
        of_manifests_.insert(use.version.manifest);
        for (const Extent& extent : use.file->extents)
          if (extent.id == blob.id && seen.emplace(use.file->size, blob.id, extent.offset).second)
            places_[use.file->size].push_back({blob.id, extent.offset});
      }
    }
    return {};
  }

  Status search(const std::string& path) {
    WEFT_TRY(const struct stat st, stat_file(path));
    if (!S_ISDIR(st.st_mode)) return search_file(path);
    if (stat_file(path + "/weft-store").ok()) return search_store(path);
    const auto origin = OriginDir::open_existing(path);
    return origin.ok() ? search_origin(*origin) : search_directory(path);
  }

  std::vector<DamagedBlob> missing() && { return std::move(wanted_); }

 private:
  struct Place {
    ContentId id;
    std::uint64_t offset = 0;  // in the published file
  };

  Result<bool> offer(const ContentId& id, int fd, std::uint64_t offset, std::string_view where) {
    WEFT_CHECK(check_cancelled(progress_));
    const Status taken = take_(id, fd, offset, where);
    if (taken.ok()) found(id);
    if (taken.ok()) return true;
    if (taken.error().code == Errc::corrupt || taken.error().code == Errc::io) return false;
    return taken.error();
  }

  Status search_file(const std::string& path) {
    const auto fd = open_file(path, O_RDONLY | O_NONBLOCK);
    if (!fd.ok()) return {};
    WEFT_TRY(const struct stat st, stat_fd(fd->get(), path));
    const auto same_size = places_.find(static_cast<std::uint64_t>(st.st_size));
    if (!S_ISREG(st.st_mode) || same_size == places_.end()) return {};
    progress_.phase(fmt::format("reading {}", printable(path)));
    for (const Place& place : same_size->second)
      if (is_wanted(place.id)) WEFT_CHECK(offer(place.id, fd->get(), place.offset, path));
    return {};
  }

  Status search_directory(const std::string& path) {
    const auto root = open_file(path, O_RDONLY | O_DIRECTORY);
    TreeWalk walk(kEntriesMax);
    walk.visit = [&](const TreeEntry& entry) -> Result<WalkNext> {
      const bool regular = S_ISREG(entry.st.st_mode);
      if (regular && places_.contains(static_cast<std::uint64_t>(entry.st.st_size)))
        WEFT_CHECK(search_file(path + "/" + entry.path));
      return wanted_.empty() ? WalkNext::end : WalkNext::enter;
    };
    walk.failed = pass_unreadable;
    walk.components_max = kComponentsMax;
    return root.ok() ? walk_tree(*root, path, walk) : pass_unreadable(root.error());
  }

  // Offers the blobs of another store, at the places in its index.
  Status search_store(const std::string& path) {
    OpenOptions options;
    options.decode = content_decoder();
    WEFT_TRY(const auto other, Store::open(path, options));
    const std::vector<DamagedBlob> blobs = wanted_;
    for (const DamagedBlob& blob : blobs) {
      const auto place = other->open_blob(blob.id);
      if (place.ok())
        WEFT_CHECK(offer(blob.id, place->pack->fd(), place->offset, pack_path(other->directory(), place->pack->id())));
    }
    return {};
  }

  Status search_origin(const OriginDir& origin) {
    for (const Digest& manifest : of_manifests_) {
      const auto places = origin.places(manifest);
      if (!places.ok()) continue;
      const std::vector<DamagedBlob> blobs = wanted_;
      for (const DamagedBlob& blob : blobs) {
        const auto place = places->find(blob.id);
        if (!place) continue;
        const auto pack = origin.open_pack(place->pack);
        if (pack.ok())
          WEFT_CHECK(offer(blob.id, pack->get(), place->offset, origin_pack_name(origin.path(), place->pack)));
      }
    }
    return {};
  }

  void found(const ContentId& id) {
    std::erase_if(wanted_, [&id](const DamagedBlob& blob) { return blob.id == id; });
  }

  bool is_wanted(const ContentId& id) const {
    return std::ranges::find(wanted_, id, &DamagedBlob::id) != wanted_.end();
  }

  Store& store_;
  std::vector<DamagedBlob> wanted_;
  const TakeBlob& take_;
  Progress& progress_;
  ManifestCache manifests_;
  std::map<std::uint64_t, std::vector<Place>> places_;  // by size of the published file
  std::set<Digest> of_manifests_;                       // manifests of versions that hold these blobs
};

}  // namespace

std::string AffectedFile::text() const {
  std::string text = fmt::format("{} {}", spec_of(model, number), printable(path));
  if (tensors.empty()) return text;
  text += tensors.size() == 1 && more_tensors == 0 ? " (tensor " : " (tensors ";
  for (std::size_t i = 0; i < tensors.size(); ++i) text += (i > 0 ? ", " : "") + printable(tensors[i]);
  if (more_tensors > 0) text += fmt::format(" and {} more", more_tensors);
  return text + ")";
}

Result<AffectedFiles> affected_files(Store& store, std::span<const DamagedBlob> blobs, std::size_t count_max) {
  ManifestCache manifests(store);
  std::map<std::tuple<std::string, std::uint64_t, std::string>, AffectedFile> all;
  for (const DamagedBlob& blob : blobs) {
    WEFT_TRY(const auto uses, uses_of(store, manifests, blob.id));
    for (const Use& use : uses) {
      AffectedFile& affected = all[{use.version.model_name, use.version.number, use.file->path}];
      affected.model = use.version.model_name;
      affected.number = use.version.number;
      affected.path = use.file->path;
      name_tensors(use, blob.id, affected);
    }
  }
  AffectedFiles affected;
  for (auto& [key, file] : all) {
    if (affected.files.size() < count_max)
      affected.files.push_back(std::move(file));
    else
      ++affected.more;
  }
  return affected;
}

Result<std::vector<DamagedBlob>> search_blobs(Store& store, std::vector<DamagedBlob> blobs,
                                              std::span<const std::string> paths, const TakeBlob& take,
                                              Progress& progress) {
  Search search(store, std::move(blobs), take, progress);
  WEFT_CHECK(search.find_files());
  for (const std::string& path : paths) WEFT_CHECK(search.search(path));
  return std::move(search).missing();
}

}  // namespace weft
