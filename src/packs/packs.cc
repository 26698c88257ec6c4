#include "packs/packs.h"

#include <fcntl.h>

#include <algorithm>

#include <fmt/core.h>

#include "diskformat/pack_names.h"
#include "os/file_map.h"
#include "os/file_ops.h"
#include "os/sys.h"
#include "packs/toc_cache.h"
#include "weft/store/cluster_store.h"

namespace weft {
namespace {

// A lookup fails if gc moves the blob meanwhile. That is rare, so this many failures in a row mean damage.
constexpr int kMoves = 16;

bool is_of_this_boot(const PackListing& listing) {
  return listing.boot().empty() || listing.boot() == boot_id();
}

class PackFile final : public OpenPack {
 public:
  PackFile(PackId id, Fd fd, std::uint64_t size, std::shared_ptr<TocCache> tocs)
      : id_(id), fd_(std::move(fd)), size_(size), tocs_(std::move(tocs)), map_(fd_.get(), size) {}
  int fd() const override { return fd_.get(); }
  std::uint64_t size() const override { return size_; }
  PackId id() const override { return id_; }
  const std::byte* map() const override { return map_.bytes(); }

  Status check_place(const ContentId& id, std::uint64_t offset) const override {
    prepare();
    WEFT_CHECK(check_boot());
    if (offset > size_ || id.length > size_ - offset)
      return Error{Errc::corrupt,
                   fmt::format("pack {}: expected {} bytes at {}, got a pack of {} bytes; run `weft fsck --rebuild`",
                               pack_name(id_), id.length, offset, size_)};
    auto listed = listing_with(id, offset);
    if (!listed.ok() && listed.error().code == Errc::not_found) return listed.error();
    if (!listed.ok()) return Error{Errc::corrupt, fmt::format("{}; run `weft fsck --rebuild`", listed.error().message)};
    if ((*listed)->has(id, offset)) return {};
    return Error{Errc::corrupt,
                 fmt::format("pack {}: expected blob {} at {}, where its table of contents has none such; "
                             "run `weft fsck --rebuild`",
                             pack_name(id_), to_hex(id.root), offset)};
  }

  void prepare() const override { static_cast<void>(listing()); }

 private:
  Result<std::shared_ptr<const PackListing>> listing() const {
    std::lock_guard lock(mutex_);
    if (!listing_) {
      WEFT_TRY(listing_, tocs_->listing(id_));
      if (listing_->cached()) touch_file(fd_.get());  // eviction takes the packs first that were not opened for longest
    }
    return listing_;
  }

  // Reads the .toc of a cached pack again if it does not list the blob: a fetch may have added it.
  Result<std::shared_ptr<const PackListing>> listing_with(const ContentId& id, std::uint64_t offset) const {
    WEFT_TRY(auto listed, listing());
    if (!listed->cached() || listed->has(id, offset)) return listed;
    std::lock_guard lock(mutex_);
    WEFT_TRY(listing_, tocs_->listing(id_));
    return listing_;
  }

  // A pack that was only in memory when the machine stopped may be damaged. Reads fail until it is verified
  // (unsynced.h).
  Status check_boot() const {
    std::lock_guard lock(mutex_);
    if (!listing_ || is_of_this_boot(*listing_)) return {};
    WEFT_TRY(listing_, tocs_->listing(id_));
    if (is_of_this_boot(*listing_)) return {};
    return Error{Errc::absent, fmt::format("pack {}: it was only in memory when the machine stopped, and has not "
                                           "been verified yet",
                                           pack_name(id_))};
  }

  const PackId id_;
  const Fd fd_;
  const std::uint64_t size_;
  const std::shared_ptr<TocCache> tocs_;
  const FileMap map_;  // maps fd_
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const PackListing> listing_;  // guarded by mutex_; a pack never drops a listed blob
};

}  // namespace

PackDir::PackDir(const SafePath& path) : path_(path.held()), tocs_(std::make_shared<TocCache>(path_)) {
  raise_file_limit();
}

PackDir::~PackDir() = default;

SafePath PackDir::pack_file(PackId pack) const {
  return pack_in(path_, pack);
}

SafePath PackDir::toc_file(PackId pack) const {
  return toc_in(path_, pack);
}

SafePath PackDir::copy_file(PackId pack) const {
  return copy_in(path_, pack);
}

Packs::Packs(SafePath store_path, IndexAccess& index)
    : PackDir(packs_dir(store_path)), store_path_(std::move(store_path)), index_(index) {}

Result<std::shared_ptr<const OpenPack>> PackDir::open_alone(PackId pack) const {
  WEFT_TRY(OpenedFile file, open_with_stat(pack_in(path_, pack), O_RDONLY));
  auto size = static_cast<std::uint64_t>(file.st.st_size);
  return std::shared_ptr<const OpenPack>(std::make_shared<PackFile>(pack, std::move(file.fd), size, tocs_));
}

Result<std::shared_ptr<const OpenPack>> PackDir::open(PackId pack) {
  {
    std::lock_guard lock(mutex_);
    auto found = open_.find(pack);
    if (found != open_.end()) {
      if (auto reader = found->second.lock()) return reader;
      open_.erase(found);
    }
  }
  WEFT_TRY(std::shared_ptr<const OpenPack> reader, open_alone(pack));
  std::lock_guard lock(mutex_);
  open_[pack] = reader;
  return reader;
}

Result<std::optional<BlobPlace>> Packs::find(const ContentId& id) {
  WEFT_TRY(std::unique_ptr<BlobIndex> index, index_.read());
  WEFT_TRY(std::optional<BlobPlace> place, index->find(id));
  if (place) return place;
  WEFT_TRY(bool absent, index->is_absent(id));
  if (absent) return Error{Errc::absent, fmt::format("{}: blob {} is not on this node", store_path_, to_hex(id.root))};
  return place;
}

Result<OpenPlace> Packs::open_blob(const ContentId& id) {
  for (int attempt = 0; attempt < kMoves; ++attempt) {
    WEFT_TRY(std::optional<BlobPlace> before, find(id));
    if (!before) return Error{Errc::not_found, fmt::format("{}: no blob {}", store_path_, to_hex(id.root))};
    WEFT_TRY(auto pack, if_there(open(before->pack)));
    if (!pack) continue;
    Status there = (*pack)->check_place(id, before->offset);
    if (!there.ok() && there.error().code == Errc::not_found) continue;
    WEFT_CHECK(std::move(there));
    return OpenPlace{std::move(pack).value(), before->offset};
  }
  return Error{Errc::corrupt, fmt::format("{}: the index names a pack for blob {} that is not there; run "
                                          "`weft fsck --rebuild`",
                                          store_path_, to_hex(id.root))};
}

Result<OpenPlace> Packs::open_place(const ContentId& id, const BlobPlace& place) {
  WEFT_TRY(auto pack, open(place.pack));
  WEFT_CHECK(pack->check_place(id, place.offset));
  return OpenPlace{std::move(pack), place.offset};
}

Result<std::vector<Digest>> Packs::chunks(const ContentId& id) {
  WEFT_TRY(const OpenPlace place, open_blob(id));
  return chunks(id, {place.pack->id(), place.offset});
}

Result<std::vector<PackId>> PackDir::list() const {
  WEFT_TRY(std::vector<std::string> names, list_directory(path_));
  std::vector<PackId> packs;
  for (const std::string& name : names)
    if (auto pack = pack_of_name(name, ".pack")) packs.push_back(*pack);
  return packs;
}

Result<std::vector<PackId>> PackDir::list_with_copies() const {
  WEFT_TRY(const std::vector<std::string> names, list_directory(path_));
  std::set<PackId> packs;
  for (const std::string& name : names)
    for (const std::string_view suffix : {".pack", ".copy"})
      if (const auto pack = pack_of_name(name, suffix)) packs.insert(*pack);
  return std::vector<PackId>(packs.begin(), packs.end());
}

Result<PackToc> PackDir::toc(PackId pack) const {
  return read_toc_in(path_, pack);
}

Result<std::shared_ptr<const PackListing>> PackDir::listing(PackId pack) const {
  return tocs_->listing(pack);
}

Result<std::vector<Digest>> PackDir::chunks(const ContentId& id, const BlobPlace& place) const {
  return tocs_->chunks(id, place);
}

Result<std::vector<CachedPack>> packs_by_use(const SafePath& directory, std::span<const PackId> ids,
                                             const std::set<PackId>& pinned) {
  std::vector<CachedPack> packs;
  for (const PackId id : ids) {
    WEFT_TRY(auto st, if_there(stat_file(pack_in(directory, id))));
    if (!st) continue;
    packs.push_back({id, static_cast<std::uint64_t>(st->st_size), allocated_bytes(*st), nanoseconds(st->st_mtim),
                     pinned.contains(id)});
  }
  std::ranges::sort(packs, {}, &CachedPack::used_ns);
  return packs;
}

Result<std::vector<NewBlob>> blobs_of(const PackDir& packs, std::span<const PackId> ids) {
  std::vector<NewBlob> blobs;
  for (PackId id : ids) {
    WEFT_TRY(auto toc, if_there(packs.toc(id)));
    if (!toc) continue;
    for (const PackEntry& entry : toc->entries) blobs.push_back({entry.id, {id, entry.offset}, entry.hint});
  }
  return blobs;
}

}  // namespace weft
