#include "fakes/blob_store.h"

#include <fcntl.h>

#include "base/sys.h"

namespace weft::testing {
namespace {

Error no_versions() {
  return {Errc::unsupported, "a store of blobs alone"};
}

class FakePackReader final : public PackReader {
 public:
  FakePackReader(Fd fd, std::uint64_t size, PackId id) : fd_(std::move(fd)), size_(size), id_(id) {}
  int fd() const override { return fd_.get(); }
  std::uint64_t size() const override { return size_; }
  PackId id() const override { return id_; }

 private:
  Fd fd_;
  std::uint64_t size_;
  PackId id_;
};

class BlobSnapshot final : public Snapshot {
 public:
  BlobSnapshot(std::map<ContentId, BlobPlace> places, std::uint64_t sequence, int& looks)
      : places_(std::move(places)), sequence_(sequence), looks_(looks) {}

  std::uint64_t sequence() const override { return sequence_; }
  std::uint64_t journal_end() const override { return 0; }
  Result<BlobPlace> find_blob(const ContentId& id) override {
    ++looks_;
    const auto found = places_.find(id);
    if (found == places_.end()) return Error{Errc::not_found, "no such blob"};
    return found->second;
  }

  Result<ModelRow> model(std::string_view) override { return no_versions(); }
  Result<ModelRow> model(ModelId) override { return no_versions(); }
  Result<std::vector<ModelRow>> models() override { return no_versions(); }
  Result<std::vector<NamespaceEntry>> namespace_entries(std::string_view) override { return no_versions(); }
  Result<NamespaceEntry> namespace_entry(std::string_view, std::string_view) override { return no_versions(); }
  Result<VersionRow> version(VersionId) override { return no_versions(); }
  Result<VersionRow> version(ModelId, std::uint64_t) override { return no_versions(); }
  Result<std::vector<VersionRow>> versions(ModelId) override { return no_versions(); }
  Result<std::vector<TagRow>> tags(ModelId) override { return no_versions(); }
  Result<TagRow> tag(ModelId, std::string_view) override { return no_versions(); }
  Result<std::vector<VersionId>> children(VersionId, std::size_t) override { return no_versions(); }
  Result<LocalRow> local(VersionId) override { return no_versions(); }
  Result<std::uint64_t> owned_bytes(VersionId, std::uint32_t) override { return no_versions(); }
  Result<InodeRow> inode(Ino) override { return no_versions(); }
  Result<std::vector<std::pair<VersionId, std::uint32_t>>> holders(const ContentId&) override { return no_versions(); }
  Result<std::vector<std::pair<VersionId, std::uint32_t>>> some_holders(const ContentId&, std::size_t) override {
    return no_versions();
  }
  Result<std::vector<MatchHit>> match(const MatchQuery&) override { return no_versions(); }
  Result<std::optional<std::pair<VersionId, std::uint32_t>>> owner(const ContentId&) override { return no_versions(); }
  Result<StoreCounts> counts() override { return no_versions(); }
  std::uint64_t registry_revision() const override { return 0; }
  Result<bool> is_bare(VersionId) override { return no_versions(); }
  Result<std::vector<VersionId>> bare_versions(VersionId, std::size_t) override { return no_versions(); }
  Result<std::vector<VersionId>> unsaved(VersionId, std::size_t) override { return no_versions(); }
  Result<std::vector<VersionId>> pinned() override { return no_versions(); }

 private:
  std::map<ContentId, BlobPlace> places_;
  std::uint64_t sequence_;
  int& looks_;
};

}  // namespace

PackId BlobStore::add_pack(std::string_view bytes) {
  write_file(pack_path(++packs_), bytes);
  return packs_;
}

ContentId BlobStore::add_blob(std::uint64_t name, PackId pack, std::uint64_t offset, std::uint64_t length) {
  ContentId id;
  id.length = length;
  id.xxh.low = name;
  places_[id] = {pack, offset};
  ++sequence_;
  return id;
}

void BlobStore::move_blob(const ContentId& id, PackId pack, std::uint64_t offset) {
  places_.at(id) = {pack, offset};
  ++sequence_;
}
void BlobStore::forget_blob(const ContentId& id) {
  places_.erase(id);
  ++sequence_;
}

Result<std::unique_ptr<Snapshot>> BlobStore::snapshot() {
  return std::unique_ptr<Snapshot>(std::make_unique<BlobSnapshot>(places_, sequence_, looks));
}

Result<LockedPlace> BlobStore::lock_blob(const ContentId& id) {
  ++locks;
  before_lock();
  const auto found = places_.find(id);
  if (found == places_.end()) return Error{Errc::not_found, "no such blob"};
  const std::string path = pack_path(found->second.pack);
  WEFT_TRY(Fd fd, open_file(path, O_RDONLY));
  WEFT_TRY(const auto facts, stat_fd(fd.get(), path));
  return LockedPlace{
      std::make_shared<FakePackReader>(std::move(fd), static_cast<std::uint64_t>(facts.st_size), found->second.pack),
      found->second.offset};
}

Result<std::shared_ptr<const ManifestReader>> BlobStore::open_manifest(const Digest&) {
  return no_versions();
}
Result<std::vector<Commit>> BlobStore::commits(std::uint64_t, std::uint64_t) {
  return no_versions();
}
Result<std::unique_ptr<CommitWatch>> BlobStore::watch_commits() {
  return no_versions();
}
Result<std::unique_ptr<Import>> BlobStore::begin_import() {
  return no_versions();
}
Status BlobStore::set_tag(std::string_view, std::string_view, std::optional<std::uint64_t>) {
  return no_versions();
}
Status BlobStore::remove_version(std::string_view, std::uint64_t) {
  return no_versions();
}
Result<GcReport> BlobStore::gc(const GcOptions&, Progress&) {
  return no_versions();
}
Result<FsckReport> BlobStore::fsck(const FsckOptions&, const ContentDecoder&, Progress&) {
  return no_versions();
}

}  // namespace weft::testing
