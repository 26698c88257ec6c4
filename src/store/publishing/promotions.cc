#include "store/publishing/promotions.h"

#include <fcntl.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include "base/log.h"
#include "diskformat/pack_names.h"
#include "diskformat/toc.h"
#include "index/blobs.h"
#include "index/pages.h"
#include "index/tables.h"
#include "os/file_ops.h"

namespace weft {
namespace {

constexpr std::size_t kPromotionHoldersAsked = 8;
constexpr std::size_t kHoldersAtOnce = 256;
constexpr std::size_t kPacksAtOnce = 256;  // packs judged under one writer lock

using IsOwn = std::function<Result<bool>(VersionId version)>;

Result<bool> is_held_here(RenewedTxn& now, const FoundBlob& blob, const IsOwn& is_own) {
  bool held = false;
  WEFT_CHECK(walk(now, kHoldersAtOnce, [&](Txn* txn, std::string_view from) -> Result<std::string> {
    WEFT_TRY(Page<Holder> page, holders_of(*txn, blob, from, kHoldersAtOnce));
    for (const auto& [version, file] : page.rows) {
      WEFT_TRY(held, is_own(version));
      if (held) return std::string();
    }
    return std::move(page.next);
  }));
  return held;
}

// True if a version of this node needs any blob of the pack.
Result<bool> is_needed_here(RenewedTxn& now, const PackToc& toc, const IsOwn& is_own) {
  for (const PackEntry& entry : toc.entries) {
    WEFT_TRY(Txn * txn, now.get());
    WEFT_TRY(const std::optional<FoundBlob> blob, find_blob(*txn, entry.id));
    if (!blob || blob->row.place.pack != toc.pack) continue;
    WEFT_TRY(const bool held, is_held_here(now, *blob, is_own));
    if (held) return true;
  }
  return false;
}

// Returns those of these packs that were promoted although no version of this node needs them. They can become cached
// again: the nodes that own the bytes keep them as long as any version needs them.
Result<std::set<PackId>> promoted_in_vain(StoreParts& parts, std::span<const PackId> packs) {
  std::map<VersionId, bool> own;
  RenewedTxn now(parts.index.env());
  const IsOwn is_own_version = [&](VersionId version) -> Result<bool> {
    if (const auto known = own.find(version); known != own.end()) return known->second;
    WEFT_TRY(Txn * txn, now.get());
    WEFT_TRY(const VersionRow row, need_row<VersionRow>(*txn, Table::versions, key_of(version)));
    return own[version] = parts.cluster.is_own(row);
  };
  std::set<PackId> in_vain;
  for (const PackId pack : packs) {
    now.end();
    const auto toc = parts.packs.toc(pack);
    if (!toc.ok() || !toc->promoted || parts.reliances.is_needed(pack) ||
        parts.is_left_young(toc_path(parts.path, pack)))
      continue;
    WEFT_TRY(const bool needed, is_needed_here(now, *toc, is_own_version));
    if (!needed) in_vain.insert(pack);
  }
  return in_vain;
}

Result<VersionName> holder_of(Txn& txn, const ContentId& id, const FoundBlob& blob) {
  WEFT_TRY(const std::vector<Holder> holders, some_holders(txn, blob, kPromotionHoldersAsked));
  for (const auto& [holder, file] : holders) {
    WEFT_TRY(const VersionRow version, need_row<VersionRow>(txn, Table::versions, key_of(holder)));
    // a large version stays a holder until gc
    if (!version.removed) return VersionName{version.model_name, version.number};
  }
  return Error{Errc::invalid, fmt::format("an extent of {} bytes with digest {} is not in the store any more",
                                          id.length, to_hex(id.root))};
}

}  // namespace

Result<Reliance> reliance_of(Txn& txn, std::span<const ContentId> blobs, const std::function<bool(PackId)>& holds) {
  WEFT_TRY(const std::vector<std::uint64_t> cached, noted(txn, kCached, 0, SIZE_MAX));
  std::set<VersionName> versions;
  Reliance reliance;
  for (const ContentId& id : blobs) {
    WEFT_TRY(const std::optional<FoundBlob> blob, find_blob(txn, id));
    if (!blob)
      return Error{Errc::invalid,
                   fmt::format("an extent of {} bytes with digest {} is not in the store", id.length, to_hex(id.root))};
    const PackId pack = blob->row.place.pack;
    if (!blob->row.absent() && holds(pack)) {
      reliance.held.insert(pack);
      if (std::binary_search(cached.begin(), cached.end(), pack)) reliance.cached.insert(pack);
      continue;
    }
    WEFT_TRY(VersionName holder, holder_of(txn, id, *blob));
    versions.insert(std::move(holder));
  }
  reliance.versions.assign(versions.begin(), versions.end());
  return reliance;
}

// Changes the .toc files first, then the index: after a crash in between, the packs are not evicted either. Touches all
// packs that the publish relies on, so that the gc of a restarted daemon keeps them until the registry has decided.
Status promote(StoreParts& parts, const WriterLock& lock, const Promotion& promotion) {
  for (const PackId pack : promotion.held)
    if (const auto toc = open_file(toc_path(parts.path, pack), O_RDONLY); toc.ok()) touch_file(toc->get());
  const std::set<PackId>& packs = promotion.cached;
  if (packs.empty()) return {};
  for (const PackId pack : packs) {
    WEFT_TRY(PackToc toc, read_toc_of(parts.path, pack));
    toc.cached = false;
    toc.promoted = true;
    WEFT_CHECK(replace_toc(toc_path(parts.path, pack), toc));
  }
  WEFT_CHECK(sync_directory(parts.path / "packs"));
  return parts.index.write(lock, [&packs](Txn& txn) -> Status {
    for (const PackId pack : packs) {
      WEFT_CHECK(erase_note(txn, kCached, pack));
      WEFT_CHECK(put_note(txn, kPromoted, pack));
    }
    return bump_sequence(txn);
  });
}

// Changes the index first, then the .toc files: after a crash in between, nothing is evicted.
Status make_cached(StoreParts& parts, const WriterLock& lock, const std::set<PackId>& packs) {
  std::vector<PackToc> tocs;
  for (const PackId pack : packs) {
    WEFT_TRY(auto toc, if_there(read_toc_of(parts.path, pack)));
    if (!toc) continue;
    if (!toc->cached) tocs.push_back(std::move(toc).value());
  }
  if (tocs.empty()) return {};
  Status noted = parts.index.write(lock, [&tocs](Txn& txn) -> Status {
    for (const PackToc& toc : tocs) {
      WEFT_CHECK(put_note(txn, kCached, toc.pack));
      WEFT_CHECK(erase_note(txn, kPromoted, toc.pack));
    }
    return bump_sequence(txn);
  });
  WEFT_CHECK(std::move(noted));
  for (PackToc& toc : tocs) {
    toc.cached = true;
    toc.promoted = false;
    WEFT_CHECK(replace_toc(toc_path(parts.path, toc.pack), toc));
  }
  return sync_directory(parts.path / "packs");
}

void undo_promotion(StoreParts& parts, const Promotion& promotion) {
  const auto given = [&]() -> Status {
    if (promotion.cached.empty()) return {};
    WEFT_TRY(const WriterLock lock, parts.index.lock());
    std::set<PackId> packs = promotion.cached;
    std::erase_if(packs, [&](PackId pack) { return !parts.reliances.is_last(pack, promotion.number); });
    return make_cached(parts, lock, packs);
  }();
  if (!given.ok())
    log_warning("manifest {}: its publish or undelete failed, and cached packs stay packs of this node: {}",
                to_hex(promotion.manifest), given.error().message);
  parts.reliances.end(promotion, true);
}

void end_promotion(StoreParts& parts, const Promotion& promotion) {
  const auto known = [&]() -> Result<bool> {
    WEFT_TRY(Txn txn, parts.index.read());
    WEFT_TRY(const std::optional<Bytes> needed, txn.get(Table::manifests, digest_key(promotion.manifest)));
    return needed.has_value();
  }();
  parts.reliances.end(promotion, known.ok() && *known);
}

// Looks without the writer lock and checks again under it.
Status undo_unneeded_promotions(StoreParts& parts, bool walk) {
  if (!parts.cluster.joined()) return {};
  WEFT_TRY(const std::vector<PackId> all, walk ? parts.packs.list() : all_noted(parts.index.env(), kPromoted));
  WEFT_TRY(const std::set<PackId> found, promoted_in_vain(parts, all));
  const std::vector<PackId> likely(found.begin(), found.end());
  for (std::size_t at = 0; at < likely.size(); at += kPacksAtOnce) {
    WEFT_TRY(const WriterLock lock, parts.index.lock());
    const auto some = std::span(likely).subspan(at, std::min(kPacksAtOnce, likely.size() - at));
    WEFT_TRY(const std::set<PackId> packs, promoted_in_vain(parts, some));
    WEFT_CHECK(make_cached(parts, lock, packs));
  }
  return {};
}

}  // namespace weft
