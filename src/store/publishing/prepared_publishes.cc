#include "store/publishing/prepared_publishes.h"

#include <algorithm>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "catalog/plan.h"
#include "index/blobs.h"
#include "index/tables.h"
#include "store/publishing/memory_versions.h"
#include "store/publishing/promotions.h"

namespace weft {
namespace {

constexpr std::size_t kHoldersAsked = 8;

MirroredVersion record_of(VersionRow version, const PublishRequest& request, std::vector<PackId> packs) {
  MirroredVersion record;
  record.version = std::move(version);
  record.tree_nodes = request.content.tree_nodes;
  record.packs = std::move(packs);
  record.tags = request.tags;
  std::sort(record.tags.begin(), record.tags.end());
  record.tags.erase(std::unique(record.tags.begin(), record.tags.end()), record.tags.end());
  return record;
}

// The parts of a prepared publish, without its packs.
struct PreparedParts {
  MirroredVersion record;
  std::vector<std::pair<std::string, std::uint64_t>> relies_on;
  Promotion promotion;  // the packs and the manifest that it relies on
};

class StorePrepared final : public PreparedPublish {
 public:
  StorePrepared(StoreParts& store, std::unique_ptr<Importer> packs) : store_(store), packs_(std::move(packs)) {}
  ~StorePrepared() override {
    if (kept_) {
      end_promotion(store_, parts.promotion);
    } else {
      discard(store_, packs_->new_blobs());
      undo_promotion(store_, parts.promotion);
    }
  }
  const MirroredVersion& record() const override { return parts.record; }
  std::span<const std::pair<std::string, std::uint64_t>> relies_on() const override { return parts.relies_on; }
  std::uint64_t new_bytes() const override {
    std::uint64_t bytes = 0;
    for (const NewBlob& blob : packs_->new_blobs()) bytes += blob.id.length;
    return bytes;
  }
  void keep() override { kept_ = true; }

  Importer& packs() { return *packs_; }
  PreparedParts parts;

 private:
  StoreParts& store_;
  const std::unique_ptr<Importer> packs_;
  bool kept_ = false;
};

Result<std::pair<std::string, std::uint64_t>> holder_of(Txn& txn, const ContentId& id, const FoundBlob& blob) {
  WEFT_TRY(const std::vector<Holder> holders, some_holders(txn, blob, kHoldersAsked));
  for (const auto& [holder, file] : holders) {
    WEFT_TRY(const VersionRow version, need_row<VersionRow>(txn, Table::versions, key_of(holder)));
    // a large version stays a holder until gc
    if (!version.removed) return std::pair(version.model_name, version.number);
  }
  return Error{Errc::invalid, fmt::format("an extent of {} bytes with digest {} is not in the store any more",
                                          id.length, to_hex(id.root))};
}

// The versions and packs that a new version's content relies on, in one state of the index.
struct Reliance {
  std::vector<std::pair<std::string, std::uint64_t>> versions;  // live holders of blobs that have no open local pack
  std::set<PackId> held;                                        // older packs that the import has open
  std::set<PackId> cached;                                      // those of `held` that are cached
};
// Errc::invalid: a blob is neither among `fresh` nor in the index.
Result<Reliance> reliance_of(Txn& txn, const VersionContent& content, std::span<const NewBlob> fresh,
                             const Importer& import) {
  std::unordered_set<ContentId> brought;
  for (const NewBlob& blob : fresh) brought.insert(blob.id);
  WEFT_TRY(std::vector<std::uint64_t> cached, noted(txn, kCached, 0, SIZE_MAX));
  std::set<std::pair<std::string, std::uint64_t>> versions;
  Reliance reliance;
  for (const ContentId& id : blobs_of(content)) {
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
    WEFT_TRY(auto holder, holder_of(txn, id, *blob));
    versions.insert(std::move(holder));
  }
  reliance.versions.assign(versions.begin(), versions.end());
  return reliance;
}

Status prepare_in_place(StoreParts& store, const PublishRequest& request, SealedManifest sealed, Importer& packs,
                        PreparedParts& parts) {
  const Digest manifest = sealed.digest;
  WEFT_TRY(WriterLock lock, lock_with_shared(store, packs));
  WEFT_CHECK(place(store, std::move(sealed), packs));
  WEFT_CHECK(replace_damaged(store, lock, packs.new_blobs()));
  Reliance reliance;
  {
    WEFT_TRY(Txn txn, store.index.read());
    WEFT_TRY(VersionRow version, plan_version(txn, request, manifest));
    WEFT_TRY(const Counters counters, get_counters(txn));
    Allocator numbers(counters);
    numbers.range(request.content.tree_nodes);
    WEFT_CHECK(numbers.check_room());
    version.publisher = store.cluster.identity()->node;
    parts.record = record_of(std::move(version), request, pack_ids(packs.new_blobs()));
    WEFT_TRY(parts.record.in_memory, packs.in_memory() ? Result(true) : relies_on_memory(store, txn, request));
    WEFT_TRY(reliance, reliance_of(txn, request.content, packs.new_blobs(), packs));
  }
  parts.relies_on = std::move(reliance.versions);
  const std::vector<PackId> brought = pack_ids(packs.new_blobs());
  parts.promotion = {reliance.held, reliance.cached, {brought.begin(), brought.end()}, manifest, 0};
  parts.promotion.number = store.reliances.add(parts.promotion);
  return promote(store, lock, parts.promotion);
}

}  // namespace

Result<std::unique_ptr<PreparedPublish>> prepare_publish(StoreParts& parts, const PublishRequest& request,
                                                         SealedManifest manifest, std::unique_ptr<Importer> packs) {
  WEFT_CHECK(parts.cluster.check_clustered());
  WEFT_CHECK(check_request(request));
  auto prepared = std::make_unique<StorePrepared>(parts, std::move(packs));
  WEFT_CHECK(prepared->packs().hold(blobs_of(request.content)));
  foresee(parts, request);
  WEFT_CHECK(prepare_in_place(parts, request, std::move(manifest), prepared->packs(), prepared->parts));
  return std::unique_ptr<PreparedPublish>(std::move(prepared));
}

}  // namespace weft
