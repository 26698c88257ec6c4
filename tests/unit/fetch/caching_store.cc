#include "caching_store.h"

#include <fcntl.h>
#include <unistd.h>

#include <map>
#include <utility>

#include "base/sha256.h"
#include "os/sys.h"

namespace weft::testing {

class CachingStore::Filling final : public FetchPack {
 public:
  Filling(CachingStore& store, Fd fd, PackId id, std::uint64_t size)
      : store_(store), fd_(std::move(fd)), id_(id), size_(size) {
    ++store_.filled;
  }
  ~Filling() override { --store_.filled; }
  PackId id() const override { return id_; }
  int fd() const override { return fd_.get(); }
  std::uint64_t size() const override { return size_; }
  Result<std::size_t> add(std::span<const FetchedBlob> blobs) override {
    if (!store_.no_room.ok()) return store_.no_room.error();
    ++store_.adds;
    std::map<ContentId, BlobPlace> places;
    for (const FetchedBlob& blob : blobs) {
      if (tree_root(blob.id.length, blob.chunks) != blob.id.root) return Error{Errc::invalid, "not its digests"};
      places[blob.id] = {id_, blob.offset};
    }
    store_.set_places(places);
    return blobs.size();
  }

 private:
  CachingStore& store_;
  Fd fd_;
  PackId id_;
  std::uint64_t size_;
};

Status CachingStore::adopt(std::span<const Adoption> versions) {
  for (const Adoption& one : versions) add_manifest(one.manifest);
  return {};
}

Result<std::unique_ptr<FetchPack>> CachingStore::fill(PackId pack, std::uint64_t size) {
  WEFT_TRY(Fd fd, open_file(pack_path(pack), O_RDWR));
  if (::ftruncate(fd.get(), static_cast<off_t>(size)) != 0) return Error{Errc::io, "ftruncate"};
  return std::unique_ptr<FetchPack>(std::make_unique<Filling>(*this, std::move(fd), pack, size));
}

Result<std::unique_ptr<FetchPack>> CachingStore::fetch_pack(std::uint64_t size) {
  if (!no_pack.ok()) return no_pack.error();
  return fill(add_pack(""), size);
}

Result<std::unique_ptr<FetchPack>> CachingStore::take_file(const SafePath& file) {
  WEFT_TRY(const auto bytes, read_file(file, UINT64_MAX));
  const PackId pack = add_pack(std::string(as_text(bytes)));
  WEFT_CHECK(remove_file(file));
  return fill(pack, bytes.size());
}

Result<std::unique_ptr<FetchPack>> CachingStore::resume_fetch(PackId pack) {
  WEFT_TRY(const auto facts, stat_file(pack_path(pack)));
  return fill(pack, static_cast<std::uint64_t>(facts.st_size));
}

}  // namespace weft::testing
