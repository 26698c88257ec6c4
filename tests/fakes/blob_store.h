// A Store that holds blobs and nothing else: packs are files of a directory of its own, places can be moved. What only
// a store with versions can answer is Errc::unsupported.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "testing.h"
#include "weft/store.h"

namespace weft::testing {

class BlobStore final : public Store {
 public:
  // Makes a pack of these bytes.
  PackId add_pack(std::string_view bytes);
  // Names `length` bytes at `offset` of a pack; ids are made up from `name`.
  ContentId add_blob(std::uint64_t name, PackId pack, std::uint64_t offset, std::uint64_t length);
  void move_blob(const ContentId& id, PackId pack, std::uint64_t offset);
  void forget_blob(const ContentId& id);

  std::function<void()> before_lock = [] {};  // called by lock_blob()
  int locks = 0;                              // how often lock_blob() was called
  int looks = 0;                              // how often a snapshot was asked for a blob

  const StoreInfo& info() const override { return info_; }
  const std::string& path() const override { return directory_.path(); }
  const std::optional<ClusterIdentity>& cluster() const override { return cluster_; }
  Result<std::unique_ptr<Snapshot>> snapshot() override;
  Result<std::vector<Commit>> commits(std::uint64_t from, std::uint64_t to) override;
  Result<std::unique_ptr<CommitWatch>> watch_commits() override;
  Result<LockedPlace> lock_blob(const ContentId& id) override;
  Result<std::shared_ptr<const ManifestReader>> open_manifest(const Digest& digest) override;
  Result<std::unique_ptr<Import>> begin_import() override;
  Status set_tag(std::string_view model, std::string_view tag, std::optional<std::uint64_t> number) override;
  Status remove_version(std::string_view model, std::uint64_t number) override;
  Result<GcReport> gc(const GcOptions& options, Progress& progress) override;
  Result<FsckReport> fsck(const FsckOptions& options, const ContentDecoder& decode, Progress& progress) override;

 private:
  std::string pack_path(PackId pack) const { return directory_ / std::to_string(pack); }

  TempDir directory_;
  StoreInfo info_;
  std::optional<ClusterIdentity> cluster_;
  PackId packs_ = 0;
  std::uint64_t sequence_ = 0;
  std::map<ContentId, BlobPlace> places_;
};

}  // namespace weft::testing
