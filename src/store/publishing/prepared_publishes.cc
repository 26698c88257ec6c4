#include "store/publishing/prepared_publishes.h"

#include <algorithm>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "catalog/plan.h"
#include "index/tables.h"
#include "store/publishing/memory_versions.h"
#include "store/publishing/promotions.h"

namespace weft {
namespace {

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

// Returns the blobs of the content that the publish does not bring.
std::vector<ContentId> reused_blobs(const VersionContent& content, std::span<const NewBlob> fresh) {
  std::unordered_set<ContentId> brought;
  for (const NewBlob& blob : fresh) brought.insert(blob.id);
  std::vector<ContentId> blobs = blobs_of(content);
  std::erase_if(blobs, [&](const ContentId& id) { return brought.contains(id); });
  return blobs;
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
    WEFT_TRY(reliance, reliance_of(txn, reused_blobs(request.content, packs.new_blobs()),
                                   [&packs](PackId pack) { return packs.holds(pack); }));
  }
  for (VersionName& version : reliance.versions) parts.relies_on.emplace_back(std::move(version.model), version.number);
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
