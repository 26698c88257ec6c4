// A store of blobs, and of rows and manifests of versions of no model, for readers. Packs are files in a directory of
// its own, places can be changed, and blobs and manifests may be absent.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "fakes/stub_store.h"
#include "os/safe_path.h"
#include "testing.h"

namespace weft::testing {

class BlobStore : public StubStore {
 public:
  // Makes a pack of these bytes.
  PackId add_pack(std::string_view bytes);
  std::string pack_path(PackId pack) const { return directory_ / std::to_string(pack); }
  // Adds a blob: `length` bytes at `offset` of a pack. Returns an id derived from `name`.
  ContentId add_blob(std::uint64_t name, PackId pack, std::uint64_t offset, std::uint64_t length);
  void add_absent(const ContentId& id) { set_places({{id, {}}}); }
  void move_blob(const ContentId& id, PackId pack, std::uint64_t offset) { set_places({{id, {pack, offset}}}); }
  void forget_blob(const ContentId& id);
  // Adds a version with this manifest, bare until the manifest is added. Blobs that were not added are absent.
  VersionId add_version(const Digest& manifest, std::string_view publisher = "", std::uint64_t time_ns = 0);
  void add_manifest(std::vector<std::byte> bytes);
  void own(const ContentId& id, VersionId first);  // sets the first holder of a blob

  std::function<void()> before_lock = [] {};  // called by open_blob()
  std::atomic<int> locks = 0;                 // number of open_blob() calls
  std::atomic<int> snapshots = 0;             // number of snapshot() calls
  std::atomic<int> looks = 0;                 // number of lookups of blobs in snapshots

  const StoreInfo& info() const override { return info_; }
  const std::string& path() const override { return directory_.path(); }
  const SafePath& directory() const override { return safe_; }
  const std::optional<ClusterIdentity>& cluster() const override { return cluster_; }
  Result<std::unique_ptr<Snapshot>> snapshot() override;
  Result<IndexState> state() override;
  Result<OpenPlace> open_blob(const ContentId& id) override;
  Result<OpenPlace> open_place(const ContentId& id, const BlobPlace& place) override;
  Result<std::shared_ptr<const ManifestReader>> open_manifest(const Digest& digest) override;
  Result<VersionHold> hold_version(VersionId version) override;

 protected:
  void set_places(const std::map<ContentId, BlobPlace>& places);  // in one change; pack 0: absent

 private:
  TempDir directory_;
  const SafePath safe_ = must(SafePath::open_owned(directory_.path()));
  StoreInfo info_;
  std::optional<ClusterIdentity> cluster_;
  PackId packs_ = 0;
  std::uint64_t sequence_ = 0;
  mutable std::mutex mutex_;                  // guards the fields below
  std::map<ContentId, BlobPlace> places_;     // pack 0: absent
  std::map<VersionId, VersionRow> versions_;  // by number
  std::map<ContentId, VersionId> owners_;
  std::map<Digest, std::vector<std::byte>> manifests_;
};

}  // namespace weft::testing
