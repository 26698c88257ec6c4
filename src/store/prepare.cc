#include "store/prepare.h"

#include <algorithm>
#include <unordered_set>

#include <fmt/core.h>

#include "base/log.h"
#include "base/sha256.h"
#include "store/apply.h"
#include "store/pack_file.h"
#include "store/store_impl.h"

namespace weft {
namespace {

std::vector<ContentId> contents_of(const VersionContent& content) {
  std::vector<ContentId> ids;
  for (const VersionContent::FileContent& file : content.files)
    ids.insert(ids.end(), file.extents.begin(), file.extents.end());
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

MirroredVersion record_of(VersionRow version, const PublishRequest& request, std::vector<PackId> packs) {
  MirroredVersion record;
  record.version = std::move(version);
  record.tree_nodes = request.content.tree_nodes;
  record.tree_layout = request.content.tree_layout;
  record.packs = std::move(packs);
  record.tags = request.tags;
  std::sort(record.tags.begin(), record.tags.end());
  record.tags.erase(std::unique(record.tags.begin(), record.tags.end()), record.tags.end());
  return record;
}

class StorePrepared final : public PreparedPublish {
 public:
  StorePrepared(StoreImpl& store, std::unique_ptr<PackImport> packs, const Digest& manifest)
      : store_(store), packs_(std::move(packs)), manifest_(manifest) {}
  ~StorePrepared() override {
    parts.lock.reset();
    if (kept_) {
      store_.published(parts.promotion, manifest_);
    } else {
      store_.discard(manifest_, packs_->new_blobs());
      store_.give_back(parts.promotion);
    }
    if (parts.placing != nullptr) store_.sync_placed(*packs_, manifest_);
  }
  const MirroredVersion& record() const override { return parts.record; }
  std::span<const std::pair<std::string, std::uint64_t>> relies_on() const override { return parts.relies_on; }
  std::uint64_t new_bytes() const override {
    std::uint64_t bytes = 0;
    for (const NewBlob& blob : packs_->new_blobs()) bytes += blob.id.length;
    return bytes;
  }
  void keep() override { kept_ = true; }

  PackImport& packs() { return *packs_; }
  PreparedParts parts;

 private:
  StoreImpl& store_;
  const std::unique_ptr<PackImport> packs_;
  const Digest manifest_;
  bool kept_ = false;
};

Result<std::pair<std::string, std::uint64_t>> holder_of(Txn& txn, const ContentId& id, Bytes key) {
  WEFT_TRY(std::optional<Holder> holder, first_holder(txn, key));
  if (!holder)
    return Error{Errc::invalid, fmt::format("an extent of {} bytes with digest {} is not in the store any more",
                                            id.length, to_hex(id.root))};
  WEFT_TRY(VersionRow version, need_row<VersionRow>(txn, Table::versions, key_of(holder->first)));
  return std::pair(version.model_name, version.number);
}

}  // namespace

Result<Reliance> reliance_of(Txn& txn, const VersionContent& content, std::span<const NewBlob> fresh,
                             const PackImport& import) {
  std::unordered_set<ContentId> brought;
  for (const NewBlob& blob : fresh) brought.insert(blob.id);
  WEFT_TRY(std::vector<std::uint64_t> cached, noted(txn, kCached, 0, SIZE_MAX));
  std::set<std::pair<std::string, std::uint64_t>> versions;
  Reliance reliance;
  for (const ContentId& id : contents_of(content)) {
    if (brought.contains(id)) continue;
    WEFT_TRY(std::optional<FoundBlob> blob, find_blob(txn, id));
    if (!blob)
      return Error{Errc::invalid,
                   fmt::format("an extent of {} bytes with digest {} is not in the store", id.length, to_hex(id.root))};
    const PackId pack = blob->row.place.pack;
    if (!blob->row.absent() && import.holds(pack)) {
      reliance.held.insert(pack);
      if (std::binary_search(cached.begin(), cached.end(), pack)) reliance.cached.insert(pack);
      continue;
    }
    WEFT_TRY(auto holder, holder_of(txn, id, blob->key));
    versions.insert(std::move(holder));
  }
  reliance.versions.assign(versions.begin(), versions.end());
  return reliance;
}

// True: what this publish brings is durable, though its files are not yet; sync_placed() is to come.
Result<bool> StoreImpl::write_ahead(const PublishRequest& request, PackImport& packs) {
  if (request.manifest.size() > kPlacingMax / 2 || !placing_.take()) return false;
  auto small = packs.gather(kPlacingMax / 2);
  Status status;
  if (small.ok() && *small) {
    PlacedFiles files{(*small)->id, std::move((*small)->pack), std::move((*small)->toc), request.manifest};
    status = placing_.write(files);
    if (status.ok()) return true;
  }
  placing_.leave();
  if (!small.ok()) return std::move(small).error();
  if (!status.ok()) return std::move(status).error();
  return false;
}

// Where it fails, the record stays for the next start, and what is published meanwhile goes the long way.
void StoreImpl::sync_placed(PackImport& packs, const Digest& manifest) {
  Status status = packs.sync_entered();
  if (status.ok()) status = manifests_.sync(manifest);
  if (status.ok()) status = placing_.clear();
  if (!status.ok()) log_warning("what was published is not synced: {}", status.error().message);
}

// All names are changed before the first directory is synced: it brings the others along.
Status StoreImpl::prepare_in_place(const PublishRequest& request, const Digest& manifest, StagedManifest staged,
                                   PackImport& packs, PreparedParts& parts) {
  WEFT_TRY(WriterLock lock, lock_writer());
  WEFT_CHECK(manifests_.place(std::move(staged), manifest, request.manifest));
  if (parts.placing != nullptr) {
    WEFT_CHECK(packs.enter());
  } else {
    WEFT_CHECK(packs.place());
    WEFT_CHECK(manifests_.sync());
  }
  WEFT_CHECK(replace_damaged(lock, packs.new_blobs()));
  WEFT_TRY(parts.lock, manifests_.open(manifest));
  Reliance reliance;
  {
    WEFT_TRY(Txn txn, env_->read());
    WEFT_TRY(VersionRow version, plan_version(txn, request, manifest));
    version.publisher = cluster()->node;
    parts.record = record_of(std::move(version), request, pack_ids(packs.new_blobs()));
    WEFT_TRY(reliance, reliance_of(txn, request.content, packs.new_blobs(), packs));
  }
  parts.relies_on = std::move(reliance.versions);
  parts.promotion = {reliance.held, reliance.cached, reliances_.add(reliance.held)};
  return promote(lock, parts.promotion.packs);
}

Result<std::unique_ptr<PreparedPublish>> StoreImpl::prepare(const PublishRequest& request,
                                                            std::unique_ptr<PackImport> packs) {
  WEFT_CHECK(check_clustered());
  WEFT_CHECK(check_request(request));
  WEFT_TRY(StagedManifest staged, manifests_.stage(request.manifest));
  WEFT_TRY(const bool placing, write_ahead(request, *packs));
  if (!placing) {
    staged.begin_sync();
    WEFT_CHECK(packs->seal());
    WEFT_CHECK(staged.sync());
  }
  const Digest manifest = sha256(request.manifest);
  auto prepared = std::make_unique<StorePrepared>(*this, std::move(packs), manifest);
  if (placing) prepared->parts.placing = &placing_;
  WEFT_CHECK(prepared->packs().hold(contents_of(request.content)));
  foresee(request);
  WEFT_CHECK(prepare_in_place(request, manifest, std::move(staged), prepared->packs(), prepared->parts));
  return std::unique_ptr<PreparedPublish>(std::move(prepared));
}

}  // namespace weft
