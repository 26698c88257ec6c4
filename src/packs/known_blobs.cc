#include "packs/known_blobs.h"

namespace weft {
namespace {

constexpr int kAttempts = 16;  // an attempt fails if gc moves a blob meanwhile, or if a pack is lost

}  // namespace

// Looks all ids up. Returns packs to open before the next attempt; none: `out` is complete.
Result<std::vector<PackId>> KnownBlobs::try_look_up(std::span<const ContentId> ids, std::vector<StoredBlob>& out) {
  std::vector<PackId> missing;
  WEFT_TRY(std::unique_ptr<BlobIndex> index, index_.read());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    WEFT_TRY(const std::optional<BlobPlace> place, index->find(ids[i]));
    out[i] = {place.has_value(), {}};
    if (!place) continue;
    const auto pack = held_.find(place->pack);
    if (pack == held_.end()) {
      missing.push_back(place->pack);
      continue;
    }
    Status there = pack->second->check_place(ids[i], place->offset);
    if (!there.ok() && there.error().code == Errc::not_found) {  // removed before its .toc was read: try again
      held_.erase(pack);
      missing.push_back(place->pack);
      continue;
    }
    // Errc::absent: the pack is of an earlier boot and not verified yet (unsynced.h).
    const bool unread = !there.ok() && (there.error().code == Errc::corrupt || there.error().code == Errc::absent);
    if (!there.ok() && !unread) return std::move(there).error();
    if (there.ok()) out[i].place = {pack->second, place->offset};
  }
  return missing;
}

Status KnownBlobs::hold(std::span<const PackId> packs) {
  for (PackId id : packs) {
    if (held_.contains(id)) continue;
    WEFT_TRY(auto pack, if_there(packs_.open(id)));
    if (!pack) continue;  // gc has compacted it, or it is lost
    (*pack)->prepare();   // reads the .toc while no transaction is open
    held_.emplace(id, std::move(pack).value());
  }
  return {};
}

Result<std::vector<StoredBlob>> KnownBlobs::look_up(std::span<const ContentId> ids) {
  std::vector<StoredBlob> out(ids.size());
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    WEFT_TRY(const std::vector<PackId> missing, try_look_up(ids, out));
    if (missing.empty()) break;
    WEFT_CHECK(hold(missing));
  }
  return out;
}

Result<std::vector<ContentId>> KnownBlobs::lost() {
  WEFT_TRY(const std::unique_ptr<BlobIndex> index, index_.read());
  std::vector<ContentId> lost;
  for (const auto& [id, place] : shared_) {
    WEFT_TRY(const std::optional<BlobPlace> now, index->find(id));
    if (now) continue;
    WEFT_TRY(const bool absent, index->is_absent(id));  // evicted: the publish can rely on versions that hold it
    if (!absent) lost.push_back(id);
  }
  return lost;
}

Result<std::optional<ContentId>> KnownBlobs::hinted(std::uint64_t length, std::uint64_t hint) {
  WEFT_TRY(std::unique_ptr<BlobIndex> index, index_.read());
  return index->hinted(length, hint);
}

}  // namespace weft
