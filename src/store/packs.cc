#include "store/packs.h"

#include <fcntl.h>

#include <fmt/core.h>

#include "base/file_map.h"
#include "base/sys.h"
#include "store/file_ops.h"
#include "store/pack_file.h"
#include "store/pack_listing.h"
#include "store/toc.h"

namespace weft {
namespace {

// A blob moves when gc rewrites its pack: once in a great while, so that losing the race this often means damage.
constexpr int kMoves = 16;

class PackFile final : public OpenPack {
 public:
  PackFile(std::string toc, PackId id, Fd fd, std::uint64_t size, std::shared_ptr<PackListings> listings)
      : toc_(std::move(toc)),
        id_(id),
        fd_(std::move(fd)),
        size_(size),
        listings_(std::move(listings)),
        map_(fd_.get(), size) {}
  int fd() const override { return fd_.get(); }
  std::uint64_t size() const override { return size_; }
  PackId id() const override { return id_; }
  const std::byte* map() const override { return map_.bytes(); }
  Status check_place(const ContentId& id, std::uint64_t offset) const override;
  void prepare() const override { static_cast<void>(listing()); }

 private:
  Result<std::shared_ptr<const PackListing>> listing() const;
  Result<std::shared_ptr<const PackListing>> listing_with(const ContentId& id, std::uint64_t offset) const;

  const std::string toc_;
  const PackId id_;
  const Fd fd_;
  const std::uint64_t size_;
  const std::shared_ptr<PackListings> listings_;
  const FileMap map_;  // of that descriptor
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const PackListing> listing_;  // guarded by mutex_; a pack forgets nothing
};

Result<std::shared_ptr<const PackListing>> PackFile::listing() const {
  std::lock_guard lock(mutex_);
  if (!listing_) {
    WEFT_TRY(listing_, listings_->get(toc_, id_));
    if (listing_->cached()) touch_file(fd_.get());  // evicted are those that nobody opened for longest
  }
  return listing_;
}

// A cached pack may list more by now.
Result<std::shared_ptr<const PackListing>> PackFile::listing_with(const ContentId& id, std::uint64_t offset) const {
  WEFT_TRY(auto listed, listing());
  if (!listed->cached() || listed->has(id, offset)) return listed;
  std::lock_guard lock(mutex_);
  WEFT_TRY(listing_, listings_->get(toc_, id_));
  return listing_;
}

Status PackFile::check_place(const ContentId& id, std::uint64_t offset) const {
  if (offset > size_ || id.length > size_ - offset)
    return Error{Errc::corrupt,
                 fmt::format("pack {}: expected {} bytes at {}, got a pack of {} bytes; run `weft fsck --rebuild`",
                             pack_name(id_), id.length, offset, size_)};
  auto listed = listing_with(id, offset);
  if (!listed.ok() && listed.error().code == Errc::not_found) return listed.error();
  if (!listed.ok()) return Error{Errc::corrupt, fmt::format("{}; run `weft fsck --rebuild`", listed.error().message)};
  if ((*listed)->has(id, offset)) return {};
  return Error{Errc::corrupt, fmt::format("pack {}: expected blob {} at {}, where its table of contents has none such; "
                                          "run `weft fsck --rebuild`",
                                          pack_name(id_), to_hex(id.root), offset)};
}

}  // namespace

Packs::Packs(std::string store_path, IndexAccess& index, std::string_view directory)
    : path_(std::move(store_path)), directory_(directory), index_(index), listings_(std::make_shared<PackListings>()) {
  raise_file_limit();
}

Packs::~Packs() = default;

std::string Packs::pack_file(PackId pack) const {
  return pack_path(path_, pack, directory_);
}

std::string Packs::toc_file(PackId pack) const {
  return toc_path(path_, pack, directory_);
}

Result<std::shared_ptr<const OpenPack>> Packs::open_file_of(PackId pack) {
  const std::string path = pack_file(pack);
  WEFT_TRY(Fd fd, open_file(path, O_RDONLY));
  WEFT_TRY(struct stat st, stat_fd(fd.get(), path));
  auto size = static_cast<std::uint64_t>(st.st_size);
  return std::shared_ptr<const OpenPack>(
      std::make_shared<PackFile>(toc_file(pack), pack, std::move(fd), size, listings_));
}

Result<std::shared_ptr<const OpenPack>> Packs::open(PackId pack) {
  {
    std::lock_guard lock(mutex_);
    auto found = open_.find(pack);
    if (found != open_.end()) {
      if (auto reader = found->second.lock()) return reader;
      open_.erase(found);
    }
  }
  WEFT_TRY(std::shared_ptr<const OpenPack> reader, open_file_of(pack));
  std::lock_guard lock(mutex_);
  open_[pack] = reader;
  return reader;
}

Result<std::optional<BlobPlace>> Packs::find(const ContentId& id) {
  WEFT_TRY(std::unique_ptr<BlobIndex> index, index_.read());
  WEFT_TRY(std::optional<BlobPlace> place, index->find(id));
  if (place) return place;
  WEFT_TRY(bool absent, index->is_absent(id));
  if (absent) return Error{Errc::absent, fmt::format("{}: blob {} is not on this node", path_, to_hex(id.root))};
  return place;
}

Result<LockedPlace> Packs::lock_blob(const ContentId& id) {
  for (int attempt = 0; attempt < kMoves; ++attempt) {
    WEFT_TRY(std::optional<BlobPlace> before, find(id));
    if (!before) return Error{Errc::not_found, fmt::format("{}: no blob {}", path_, to_hex(id.root))};
    auto pack = open(before->pack);
    if (!pack.ok() && pack.error().code == Errc::not_found) continue;
    if (!pack.ok()) return pack.error();
    Status there = (*pack)->check_place(id, before->offset);
    if (!there.ok() && there.error().code == Errc::not_found) continue;
    WEFT_CHECK(std::move(there));
    return LockedPlace{std::move(pack).value(), before->offset};
  }
  return Error{Errc::corrupt, fmt::format("{}: the index names a pack for blob {} that is not there; run "
                                          "`weft fsck --rebuild`",
                                          path_, to_hex(id.root))};
}

Result<LockedPlace> Packs::lock_place(const ContentId& id, const BlobPlace& place) {
  WEFT_TRY(auto pack, open(place.pack));
  WEFT_CHECK(pack->check_place(id, place.offset));
  return LockedPlace{std::move(pack), place.offset};
}

Result<std::vector<PackId>> Packs::list() {
  WEFT_TRY(std::vector<std::string> names, list_directory(directory()));
  std::vector<PackId> packs;
  for (const std::string& name : names)
    if (auto pack = pack_of_name(name, ".pack")) packs.push_back(*pack);
  return packs;
}

Result<PackToc> Packs::toc(PackId pack) {
  return read_toc_of(path_, pack, directory_);
}

}  // namespace weft
