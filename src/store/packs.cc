#include "store/packs.h"

#include <fcntl.h>

#include <fmt/core.h>

#include "base/sys.h"
#include "store/pack_file.h"
#include "store/toc.h"

namespace weft {
namespace {

// A blob moves when gc compacts its pack: once in a great while, so that losing the race this often means damage.
constexpr int kMoves = 16;

class OpenPack final : public PackReader {
 public:
  OpenPack(PackId id, Fd fd, std::uint64_t size) : id_(id), fd_(std::move(fd)), size_(size) {}
  int fd() const override { return fd_.get(); }
  std::uint64_t size() const override { return size_; }
  PackId id() const override { return id_; }

 private:
  PackId id_;
  Fd fd_;
  std::uint64_t size_;
};

Result<std::shared_ptr<const PackReader>> open_and_lock(const std::string& path, PackId pack) {
  WEFT_TRY(Fd fd, open_file(path, O_RDONLY));
  WEFT_CHECK(lock_fd(fd.get(), LockKind::shared, LockWait::yes, path));
  WEFT_TRY(struct stat st, stat_fd(fd.get(), path));
  if (st.st_nlink == 0) return Error{Errc::not_found, fmt::format("{}: removed meanwhile", path)};
  auto size = static_cast<std::uint64_t>(st.st_size);
  return std::shared_ptr<const PackReader>(std::make_shared<const OpenPack>(pack, std::move(fd), size));
}

}  // namespace

Status check_place(const PackReader& pack, std::uint64_t offset, std::uint64_t length) {
  if (offset <= pack.size() && length <= pack.size() - offset) return {};
  return Error{Errc::corrupt,
               fmt::format("pack {}: expected {} bytes at {}, got a pack of {} bytes; run `weft fsck --rebuild`",
                           pack_name(pack.id()), length, offset, pack.size())};
}

Packs::Packs(std::string store_path, DigestMode digest, IndexAccess& index)
    : path_(std::move(store_path)), digest_(digest), index_(index) {
  raise_file_limit();
}

Result<std::shared_ptr<const PackReader>> Packs::open(PackId pack) {
  {
    std::lock_guard lock(mutex_);
    auto found = open_.find(pack);
    if (found != open_.end()) {
      if (auto reader = found->second.lock()) return reader;
      open_.erase(found);
    }
  }
  WEFT_TRY(std::shared_ptr<const PackReader> reader, open_and_lock(pack_path(path_, pack), pack));
  std::lock_guard lock(mutex_);
  open_[pack] = reader;
  return reader;
}

Result<std::optional<BlobPlace>> Packs::find(const ContentId& id) {
  WEFT_TRY(std::unique_ptr<BlobIndex> index, index_.read());
  return index->find(id);
}

Result<LockedPlace> Packs::lock_blob(const ContentId& id) {
  for (int attempt = 0; attempt < kMoves; ++attempt) {
    WEFT_TRY(std::optional<BlobPlace> before, find(id));
    if (!before) return Error{Errc::not_found, fmt::format("{}: no blob {}", path_, to_hex(id.xxh))};
    auto pack = open(before->pack);
    if (!pack.ok() && pack.error().code == Errc::not_found) continue;
    if (!pack.ok()) return pack.error();
    WEFT_TRY(std::optional<BlobPlace> after, find(id));
    if (!after || after->pack != before->pack) continue;
    WEFT_CHECK(check_place(**pack, after->offset, id.length));
    return LockedPlace{std::move(pack).value(), after->offset};
  }
  return Error{Errc::corrupt, fmt::format("{}: the index names a pack for blob {} that is not there; run "
                                          "`weft fsck --rebuild`",
                                          path_, to_hex(id.xxh))};
}

Result<std::vector<PackId>> Packs::list() {
  WEFT_TRY(std::vector<std::string> names, list_directory(path_ + "/packs"));
  std::vector<PackId> packs;
  for (const std::string& name : names)
    if (auto pack = pack_of_name(name, ".pack")) packs.push_back(*pack);
  return packs;
}

Result<PackToc> Packs::toc(PackId pack) {
  const std::string path = toc_path(path_, pack);
  WEFT_TRY(PackToc toc, read_toc(path));
  if (toc.pack != pack)
    return Error{Errc::corrupt,
                 fmt::format("{}: expected the contents of this pack, got those of {}", path, pack_name(toc.pack))};
  return toc;
}

}  // namespace weft
