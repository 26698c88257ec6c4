#include "fakes/blob_store.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstring>
#include <set>
#include <utility>

#include "base/sha256.h"
#include "blobs/fd_pack.h"
#include "diskformat/pack_names.h"
#include "os/sys.h"
#include "weft/model/arch_match.h"
#include "weft/store/commits.h"
#include "weft/store/fsck.h"
#include "weft/store/gc.h"
#include "weft/store/publish.h"
#include "weft/store/scrub.h"
#include "weft/store/snapshot.h"
#include "weft/store_rows.h"

namespace weft::testing {
namespace {

Error no_versions() {
  return {Errc::unsupported, "a store of blobs alone"};
}

class BlobSnapshot final : public Snapshot {
 public:
  BlobSnapshot(std::map<ContentId, BlobPlace> places, std::map<VersionId, VersionRow> versions,
               std::map<ContentId, VersionId> owners, std::set<Digest> manifests, std::uint64_t sequence,
               std::atomic<int>& looks)
      : places_(std::move(places)),
        versions_(std::move(versions)),
        owners_(std::move(owners)),
        manifests_(std::move(manifests)),
        sequence_(sequence),
        looks_(looks) {}

  IndexState state() const override { return {1, sequence_}; }
  std::uint64_t sequence() const override { return sequence_; }
  std::uint64_t lineage_clock() const override { return 0; }
  std::uint64_t last_rename() const override { return 0; }
  std::uint64_t journal_end() const override { return 0; }
  Result<BlobPlace> find_blob(const ContentId& id) override {
    ++looks_;
    const auto found = places_.find(id);
    if (found == places_.end()) return Error{Errc::not_found, "no such blob"};
    if (found->second.pack == 0) return Error{Errc::absent, "not here"};
    return found->second;
  }
  Result<VersionRow> version(VersionId id) override {
    const auto found = versions_.find(id);
    if (found == versions_.end()) return Error{Errc::not_found, "no such version"};
    return found->second;
  }
  Result<bool> is_bare(VersionId id) override {
    WEFT_TRY(const VersionRow row, version(id));
    return !manifests_.contains(row.manifest);
  }

  Result<ModelRow> model(std::string_view) override { return no_versions(); }
  Result<ModelRow> model(ModelId) override { return no_versions(); }
  Result<std::optional<ModelRow>> renamed(std::string_view) override { return no_versions(); }
  Result<Page<ModelRow>> models(std::string_view, std::string_view, std::size_t) override { return Page<ModelRow>{}; }
  Result<Page<NamespaceEntry>> namespace_entries(std::string_view, std::string_view, std::size_t) override {
    return no_versions();
  }
  Result<NamespaceEntry> namespace_entry(std::string_view, std::string_view) override { return no_versions(); }
  Result<VersionRow> version(ModelId, std::uint64_t number) override { return version(VersionId{number}); }
  Result<Page<VersionRow>> versions(ModelId, std::string_view, std::size_t) override { return no_versions(); }
  Result<std::optional<VersionId>> with_revision(ModelId, std::string_view) override { return no_versions(); }
  Result<Page<VersionId>> distinct(ModelId, std::string_view, std::size_t) override { return no_versions(); }
  Result<Page<TagRow>> tags(ModelId, std::string_view, std::size_t) override { return no_versions(); }
  Result<TagRow> tag(ModelId, std::string_view) override { return no_versions(); }
  Result<Page<TagMove>> tag_moves(ModelId, std::string_view) override { return no_versions(); }
  Result<Page<std::string>> tags_of(ModelId, std::uint64_t, std::string_view) override { return no_versions(); }
  Result<Page<VersionId>> children(VersionId, std::string_view, std::size_t) override { return no_versions(); }
  Result<LocalRow> local(VersionId) override { return no_versions(); }
  Result<std::uint64_t> owned_bytes(VersionId, std::uint32_t) override { return no_versions(); }
  Result<Page<std::uint64_t>> owned_by_files(VersionId, std::string_view) override { return no_versions(); }
  Result<InodeRow> inode(Ino) override { return no_versions(); }
  Result<std::vector<std::pair<VersionId, std::uint32_t>>> some_holders(const ContentId&, std::size_t) override {
    return no_versions();
  }
  Result<std::vector<MatchHit>> match(const MatchQuery&) override { return no_versions(); }
  Result<std::optional<std::pair<VersionId, std::uint32_t>>> owner(const ContentId& id) override {
    const auto found = owners_.find(id);
    if (found == owners_.end()) return std::optional<std::pair<VersionId, std::uint32_t>>{};
    return std::optional(std::pair(found->second, std::uint32_t{0}));
  }
  std::uint64_t registry_revision() const override { return 0; }
  Result<std::vector<VersionId>> bare_versions(VersionId, std::size_t) override { return no_versions(); }
  Result<std::vector<VersionId>> unsaved(VersionId, std::size_t) override { return no_versions(); }
  Result<Durability> durability(const VersionRow&) override { return Durability::local; }
  Result<std::vector<VersionId>> in_memory(VersionId, std::size_t) override { return no_versions(); }
  Result<std::vector<VersionId>> pinned(VersionId, std::size_t) override { return no_versions(); }
  Result<std::vector<VersionId>> unreaped(VersionId, std::size_t) override { return no_versions(); }

 private:
  std::map<ContentId, BlobPlace> places_;
  std::map<VersionId, VersionRow> versions_;
  std::map<ContentId, VersionId> owners_;
  std::set<Digest> manifests_;
  std::uint64_t sequence_;
  std::atomic<int>& looks_;
};

class FakeManifest final : public ManifestReader {
 public:
  explicit FakeManifest(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}
  std::span<const std::byte> bytes() const override { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace

class BlobStore::Filling final : public FetchPack {
 public:
  Filling(BlobStore& store, Fd fd, PackId id, std::uint64_t size)
      : store_(store), fd_(std::move(fd)), id_(id), size_(size) {
    ++store_.filled;
  }
  ~Filling() override { --store_.filled; }
  PackId id() const override { return id_; }
  int fd() const override { return fd_.get(); }
  std::uint64_t size() const override { return size_; }
  Result<std::size_t> add(std::span<const FetchedBlob> blobs) override {
    const std::lock_guard lock(store_.mutex_);
    if (!store_.no_room.ok()) return store_.no_room.error();
    ++store_.adds_;
    for (const FetchedBlob& blob : blobs) {
      if (tree_root(blob.id.length, blob.chunks) != blob.id.root) return Error{Errc::invalid, "not its digests"};
      store_.places_[blob.id] = {id_, blob.offset};
    }
    ++store_.sequence_;
    return blobs.size();
  }

 private:
  BlobStore& store_;
  Fd fd_;
  PackId id_;
  std::uint64_t size_;
};

PackId BlobStore::add_pack(std::string_view bytes) {
  write_file(pack_path(++packs_), bytes);
  return packs_;
}

ContentId BlobStore::add_blob(std::uint64_t name, PackId pack, std::uint64_t offset, std::uint64_t length) {
  ContentId id;
  id.length = length;
  std::memcpy(id.root.bytes.data(), &name, sizeof name);
  const std::lock_guard lock(mutex_);
  places_[id] = {pack, offset};
  ++sequence_;
  return id;
}

void BlobStore::move_blob(const ContentId& id, PackId pack, std::uint64_t offset) {
  const std::lock_guard lock(mutex_);
  places_.at(id) = {pack, offset};
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
void BlobStore::own(const ContentId& id, VersionId first) {
  const std::lock_guard lock(mutex_);
  owners_[id] = first;
}
void BlobStore::add_absent(const ContentId& id) {
  const std::lock_guard lock(mutex_);
  places_[id] = {};
}
std::size_t BlobStore::adds() const {
  const std::lock_guard lock(mutex_);
  return adds_;
}

Result<std::unique_ptr<Snapshot>> BlobStore::snapshot() {
  ++snapshots;
  const std::lock_guard lock(mutex_);
  std::set<Digest> known;
  for (const auto& [digest, bytes] : manifests_) known.insert(digest);
  return std::unique_ptr<Snapshot>(
      std::make_unique<BlobSnapshot>(places_, versions_, owners_, std::move(known), sequence_, looks));
}

Result<StoreCounts> BlobStore::counts() {
  return no_versions();
}

Result<VersionId> BlobStore::keeper(const InodeRow& /*view*/) {
  return no_versions();
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
  return open_place(place);
}

Result<OpenPlace> BlobStore::open_place(const ContentId& /*id*/, const BlobPlace& place) {
  ++locks;
  before_lock();
  return open_place(place);
}

Result<OpenPlace> BlobStore::open_place(const BlobPlace& place) const {
  const std::string path = pack_path(place.pack);
  WEFT_TRY(Fd fd, open_file(path, O_RDONLY));
  WEFT_TRY(const auto facts, stat_fd(fd.get(), path));
  return OpenPlace{std::make_shared<FdPack>(std::move(fd), static_cast<std::uint64_t>(facts.st_size), place.pack),
                   place.offset};
}

Result<VersionHold> BlobStore::hold_version(VersionId version) {
  return VersionHold(std::make_shared<const VersionId>(version));
}
Result<std::vector<VersionHold>> BlobStore::take_over_holds(std::span<const VersionId>) {
  return std::vector<VersionHold>{};
}
Result<std::shared_ptr<const ManifestReader>> BlobStore::open_manifest(const Digest& digest) {
  const std::lock_guard lock(mutex_);
  const auto found = manifests_.find(digest);
  if (found == manifests_.end()) return Error{Errc::not_found, "no such manifest"};
  return std::shared_ptr<const ManifestReader>(std::make_shared<FakeManifest>(found->second));
}
Status BlobStore::adopt(std::span<const Adoption> versions) {
  const std::lock_guard lock(mutex_);
  for (const Adoption& one : versions) manifests_[sha256(one.manifest)] = one.manifest;
  return {};
}
Result<std::unique_ptr<FetchPack>> BlobStore::fill(PackId pack, std::uint64_t size) {
  WEFT_TRY(Fd fd, open_file(pack_path(pack), O_RDWR));
  if (::ftruncate(fd.get(), static_cast<off_t>(size)) != 0) return Error{Errc::io, "ftruncate"};
  return std::unique_ptr<FetchPack>(std::make_unique<Filling>(*this, std::move(fd), pack, size));
}
Result<std::unique_ptr<FetchPack>> BlobStore::fetch_pack(std::uint64_t size) {
  if (!no_pack.ok()) return no_pack.error();
  return fill(add_pack(""), size);
}
Result<std::unique_ptr<FetchPack>> BlobStore::resume_fetch(PackId pack) {
  WEFT_TRY(const auto facts, stat_file(pack_path(pack)));
  return fill(pack, static_cast<std::uint64_t>(facts.st_size));
}
Result<std::vector<CachedPack>> BlobStore::cached_packs() {
  return std::vector<CachedPack>();
}
Result<EvictReport> BlobStore::evict(const EvictOptions&) {
  return evicts;
}
Result<std::vector<Digest>> BlobStore::chunks(const ContentId&) {
  return no_versions();
}
Result<bool> BlobStore::make_evictable(PackId) {
  return no_versions();
}
Status BlobStore::describe(std::string_view, std::uint64_t, const DescriptionChange&) {
  return no_versions();
}
Status BlobStore::rename_model(std::string_view, std::string_view) {
  return no_versions();
}
Result<UndeletedVersion> BlobStore::undelete(std::string_view, std::uint64_t, const Author&) {
  return no_versions();
}
Status BlobStore::pin(std::string_view, std::uint64_t, bool) {
  return no_versions();
}
Result<CommitBatch> BlobStore::commits(std::uint64_t) {
  return no_versions();
}
Result<std::unique_ptr<CommitWatch>> BlobStore::watch_commits() {
  return no_versions();
}
Result<std::unique_ptr<Import>> BlobStore::begin_import(Durability /*durability*/) {
  return no_versions();
}
Status BlobStore::set_tag(std::string_view, std::string_view, std::optional<std::uint64_t>, const Author&) {
  return no_versions();
}
Result<std::size_t> BlobStore::remove_versions(std::span<const VersionName>, Tagged, const Author&) {
  return no_versions();
}
Result<GcReport> BlobStore::gc(const GcOptions&, Progress&) {
  return no_versions();
}
Result<FsckReport> BlobStore::fsck(const FsckOptions&, const ContentDecoder&, Progress&) {
  return no_versions();
}

Result<std::unique_ptr<BlobRepair>> BlobStore::begin_repair() {
  return no_versions();
}

Result<ScrubReport> BlobStore::scrub(const ScrubOptions&, Progress&) {
  return no_versions();
}

Result<std::optional<ForgottenPlace>> BlobStore::forget_damaged(const ContentId&) {
  return no_versions();
}

Status BlobStore::put_back(const ContentId&, const BlobPlace&) {
  return no_versions();
}

}  // namespace weft::testing
