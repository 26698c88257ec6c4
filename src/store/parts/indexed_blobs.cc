#include "store/parts/indexed_blobs.h"

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "catalog/apply.h"
#include "index/blobs.h"
#include "index/gc_queue.h"
#include "index/manifests.h"
#include "index/tables.h"

namespace weft {
namespace {

// No effect for a manifest without a row, which no version needs.
Status move_manifest(Txn& txn, const Digest& digest, const BlobPlace& place, std::uint64_t length) {
  WEFT_TRY(const std::optional<ManifestRow> row, find_manifest(txn, digest));
  return row ? place_manifest(txn, digest, place, length) : Status{};
}

// A blob is dead only if it is marked dead and has no holder. So the loss of a row in one of the two tables frees
// nothing.
Result<bool> blob_is_held(Txn& txn, const ContentId& id) {
  WEFT_TRY(std::optional<FoundBlob> blob, find_blob(txn, id));
  if (!blob) return false;
  WEFT_TRY(std::optional<Holder> holder, first_holder(txn, *blob));
  if (holder) return true;
  WEFT_TRY(std::optional<NumberRow> dead, find_row<NumberRow>(txn, Table::dead, blob->key));
  if (!dead) return damaged(txn, "a blob that is not marked dead has no holder");
  return false;
}

Status put_blob(Txn& txn, const ContentId& id, const BlobPlace& place) {
  WEFT_CHECK(queue_pack(txn, place.pack));
  WEFT_TRY(std::optional<FoundBlob> blob, find_blob(txn, id));
  if (blob) return place_blob(txn, *std::move(blob), place);
  auto added = add_blob(txn, id, place);
  return added.ok() ? Status{} : Status{std::move(added).error()};
}

Status erase_dead(Txn& txn, const ContentId& id, std::uint64_t hint) {
  WEFT_TRY(bool held, blob_is_held(txn, id));
  if (held) return Error{Errc::internal, fmt::format("{}: a blob that versions need was to be erased", txn.path())};
  WEFT_TRY(std::optional<FoundBlob> blob, find_blob(txn, id));
  if (!blob) return {};
  WEFT_CHECK(erase_hint(txn, id, hint));
  WEFT_CHECK(txn.erase(Table::dead, blob->key));
  return erase_blob(txn, *blob);
}

// The reading half of both interfaces.
template <class Interface>
class TxnReads : public Interface {
 public:
  explicit TxnReads(Txn txn) : txn_(std::move(txn)) {}
  Result<std::optional<BlobPlace>> find(const ContentId& id) override {
    WEFT_TRY(const std::optional<FoundBlob> blob, find_blob(*txn_, id));
    return blob && !blob->row.absent() ? std::optional(blob->row.place) : std::nullopt;
  }
  Result<std::optional<ContentId>> hinted(std::uint64_t length, std::uint64_t hint) override {
    return find_hinted(*txn_, length, hint);
  }
  Result<bool> is_held(const ContentId& id) override { return blob_is_held(*txn_, id); }
  Result<bool> is_absent(const ContentId& id) override {
    WEFT_TRY(const std::optional<FoundBlob> blob, find_blob(*txn_, id));
    return blob && blob->row.absent();
  }
  Result<std::optional<BlobPlace>> find_manifest(const Digest& digest) override {
    WEFT_TRY(const std::optional<ManifestRow> row, weft::find_manifest(*txn_, digest));
    return row && row->packed() ? std::optional(row->place) : std::nullopt;
  }
  Result<std::uint64_t> in_pack(PackId pack) override { return blobs_in_pack(*txn_, pack); }
  Result<std::vector<VersionId>> unreaped() override { return noted(*txn_, kUnreaped, 0, SIZE_MAX); }
  Result<std::vector<NotedPack>> queued(PackId from, std::size_t count_max) override {
    return queued_packs(*txn_, from, count_max);
  }
  Result<std::vector<NotedPack>> left_dead(PackId from, std::size_t count_max) override {
    return packs_left_dead(*txn_, from, count_max);
  }

 protected:
  std::optional<Txn> txn_;
};

// Records its writes and repeats them after the map had to grow. The writer lock is held meanwhile, so they have the
// same effect.
class TxnBlobWriter final : public TxnReads<BlobWriter> {
 public:
  TxnBlobWriter(Env& env, WriterLock lock, Txn txn) : TxnReads(std::move(txn)), env_(env), lock_(std::move(lock)) {}
  ~TxnBlobWriter() override { txn_.reset(); }  // before the lock

  Status put(const ContentId& id, const BlobPlace& place) override {
    return run([id, place](Txn& txn) { return put_blob(txn, id, place); });
  }
  Status erase(const ContentId& id, std::uint64_t hint) override {
    return run([id, hint](Txn& txn) { return erase_dead(txn, id, hint); });
  }
  Status put_manifest(const Digest& digest, const BlobPlace& place, std::uint64_t length) override {
    return run([digest, place, length](Txn& txn) { return move_manifest(txn, digest, place, length); });
  }
  Status note(const PackVerdict& verdict) override {
    return run([verdict](Txn& txn) { return note_verdict(txn, verdict); });
  }
  Status note_cached(PackId pack, bool cached) override {
    return run([=](Txn& txn) { return cached ? put_note(txn, kCached, pack) : erase_note(txn, kCached, pack); });
  }
  Status commit() override {
    WEFT_CHECK(run(bump_sequence));
    for (;;) {
      Status status = txn_->commit();
      if (status.ok() || !txn_->map_full()) return status;
      WEFT_CHECK(again());
    }
  }

 private:
  using Step = std::function<Status(Txn&)>;

  Status run(const Step& step) {
    steps_.push_back(step);
    Status status = step(*txn_);
    return status.ok() || !txn_->map_full() ? status : again();
  }

  Status again() {
    for (;;) {
      txn_.reset();
      WEFT_CHECK(env_.grow(lock_));
      WEFT_TRY(Txn txn, env_.write(lock_));
      txn_.emplace(std::move(txn));
      Status status;
      for (const Step& step : steps_) {
        status = step(*txn_);
        if (!status.ok()) break;
      }
      if (status.ok() || !txn_->map_full()) return status;
    }
  }

  Env& env_;
  WriterLock lock_;
  std::vector<Step> steps_;
};

}  // namespace

Status check_judgeable(Txn& txn, const ClusterFacts& cluster) {
  WEFT_TRY(std::vector<VersionId> incomplete, noted(txn, kIncomplete, 0, 1));
  if (incomplete.empty()) return {};
  if (!cluster.joined())
    return Error{Errc::corrupt,
                 fmt::format("{}: manifests of live versions are missing, so gc cannot tell what they need; "
                             "`weft fsck` names them, restore or `weft rm` them",
                             cluster.store_path())};
  WEFT_TRY(VersionRow version, need_row<VersionRow>(txn, Table::versions, key_of(incomplete.front())));
  return Error{Errc::busy, fmt::format("{}: manifests of live versions are not here yet, so gc cannot tell what they "
                                       "need: the first is that of {}@{}",
                                       cluster.store_path(), version.model_name, version.number)};
}

Result<std::unique_ptr<BlobIndex>> IndexedBlobs::read() {
  WEFT_TRY(Txn txn, index_.read());
  return std::unique_ptr<BlobIndex>(std::make_unique<TxnReads<BlobIndex>>(std::move(txn)));
}

Result<std::unique_ptr<BlobWriter>> IndexedBlobs::write() {
  WEFT_TRY(WriterLock lock, index_.lock());
  WEFT_TRY(Txn txn, index_.env().write(lock));
  if (cluster_.joined()) WEFT_CHECK(check_judgeable(txn, cluster_));  // a bare version may have been added since
  return std::unique_ptr<BlobWriter>(std::make_unique<TxnBlobWriter>(index_.env(), std::move(lock), std::move(txn)));
}

}  // namespace weft
