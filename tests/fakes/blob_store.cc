#include "fakes/blob_store.h"

#include <fcntl.h>

#include <cstring>
#include <set>
#include <utility>

#include "base/sha256.h"
#include "blobs/fd_pack.h"
#include "os/sys.h"

namespace weft::testing {
namespace {

struct BlobState {
  std::map<ContentId, BlobPlace> places;
  std::map<VersionId, VersionRow> versions;
  std::map<ContentId, VersionId> owners;
  std::set<Digest> manifests;
  std::uint64_t sequence = 0;
};

class BlobSnapshot final : public StubSnapshot {
 public:
  BlobSnapshot(BlobState state, std::atomic<int>& looks) : state_(std::move(state)), looks_(looks) {}

  IndexState state() const override { return {1, state_.sequence}; }
  std::uint64_t sequence() const override { return state_.sequence; }
  Result<BlobPlace> find_blob(const ContentId& id) override {
    ++looks_;
    const auto found = state_.places.find(id);
    if (found == state_.places.end()) return Error{Errc::not_found, "no such blob"};
    if (found->second.pack == 0) return Error{Errc::absent, "not here"};
    return found->second;
  }
  Result<VersionRow> version(VersionId id) override {
    const auto found = state_.versions.find(id);
    if (found == state_.versions.end()) return Error{Errc::not_found, "no such version"};
    return found->second;
  }
  Result<VersionRow> version(ModelId, std::uint64_t number) override { return version(VersionId{number}); }
  Result<Page<ModelRow>> models(From, std::string_view, std::size_t) override { return Page<ModelRow>{}; }
  Result<bool> is_bare(VersionId id) override {
    WEFT_TRY(const VersionRow row, version(id));
    return !state_.manifests.contains(row.manifest);
  }
  Result<std::optional<std::pair<VersionId, std::uint32_t>>> owner(const ContentId& id) override {
    const auto found = state_.owners.find(id);
    if (found == state_.owners.end()) return std::optional<std::pair<VersionId, std::uint32_t>>{};
    return std::optional(std::pair(found->second, std::uint32_t{0}));
  }

 private:
  const BlobState state_;
  std::atomic<int>& looks_;
};

class FakeManifest final : public ManifestReader {
 public:
  explicit FakeManifest(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}
  std::span<const std::byte> bytes() const override { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

Result<OpenPlace> open_in(const std::string& path, const BlobPlace& place) {
  WEFT_TRY(Fd fd, open_file(path, O_RDONLY));
  WEFT_TRY(const auto facts, stat_fd(fd.get(), path));
  return OpenPlace{std::make_shared<FdPack>(std::move(fd), static_cast<std::uint64_t>(facts.st_size), place.pack),
                   place.offset};
}

}  // namespace

PackId BlobStore::add_pack(std::string_view bytes) {
  write_file(pack_path(++packs_), bytes);
  return packs_;
}

ContentId BlobStore::add_blob(std::uint64_t name, PackId pack, std::uint64_t offset, std::uint64_t length) {
  ContentId id;
  id.length = length;
  std::memcpy(id.root.bytes.data(), &name, sizeof name);
  move_blob(id, pack, offset);
  return id;
}

void BlobStore::set_places(const std::map<ContentId, BlobPlace>& places) {
  const std::lock_guard lock(mutex_);
  for (const auto& [id, at] : places) places_[id] = at;
  ++sequence_;
}

void BlobStore::forget_blob(const ContentId& id) {
  const std::lock_guard lock(mutex_);
  places_.erase(id);
  ++sequence_;
}

VersionId BlobStore::add_version(const Digest& manifest, std::string_view publisher, std::uint64_t time_ns) {
  const std::lock_guard lock(mutex_);
  VersionRow row;
  row.id = versions_.size() + 1;
  row.model_name = "model";
  row.number = row.id;
  row.manifest = manifest;
  row.publisher = publisher;
  row.time_ns = time_ns;
  versions_[row.id] = row;
  return row.id;
}

void BlobStore::add_manifest(std::vector<std::byte> bytes) {
  const std::lock_guard lock(mutex_);
  const Digest digest = sha256(bytes);
  manifests_[digest] = std::move(bytes);
}

void BlobStore::own(const ContentId& id, VersionId first) {
  const std::lock_guard lock(mutex_);
  owners_[id] = first;
}

Result<std::unique_ptr<Snapshot>> BlobStore::snapshot() {
  ++snapshots;
  const std::lock_guard lock(mutex_);
  BlobState state{places_, versions_, owners_, {}, sequence_};
  for (const auto& [digest, bytes] : manifests_) state.manifests.insert(digest);
  return std::unique_ptr<Snapshot>(std::make_unique<BlobSnapshot>(std::move(state), looks));
}

Result<IndexState> BlobStore::state() {
  const std::lock_guard lock(mutex_);
  return IndexState{1, sequence_};
}

Result<OpenPlace> BlobStore::open_blob(const ContentId& id) {
  ++locks;
  before_lock();
  BlobPlace place;
  {
    const std::lock_guard lock(mutex_);
    const auto found = places_.find(id);
    if (found == places_.end()) return Error{Errc::not_found, "no such blob"};
    place = found->second;
  }
  if (place.pack == 0) return Error{Errc::absent, "not here"};
  return open_in(pack_path(place.pack), place);
}

Result<OpenPlace> BlobStore::open_place(const ContentId& /*id*/, const BlobPlace& place) {
  ++locks;
  before_lock();
  return open_in(pack_path(place.pack), place);
}

Result<std::shared_ptr<const ManifestReader>> BlobStore::open_manifest(const Digest& digest) {
  const std::lock_guard lock(mutex_);
  const auto found = manifests_.find(digest);
  if (found == manifests_.end()) return Error{Errc::not_found, "no such manifest"};
  return std::shared_ptr<const ManifestReader>(std::make_shared<FakeManifest>(found->second));
}

Result<VersionHold> BlobStore::hold_version(VersionId version) {
  return VersionHold(std::make_shared<const VersionId>(version));
}

}  // namespace weft::testing
