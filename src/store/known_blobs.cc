#include "store/known_blobs.h"

#include <algorithm>

#include <fmt/core.h>

#include "store/pack_file.h"

namespace weft {
namespace {

constexpr int kAttempts = 16;  // each fails only if gc moved a blob between two looks

}  // namespace

Result<KnownBlobs::Rows> KnownBlobs::rows_of(BlobIndex& index, const ContentId& id, bool proven) {
  if (!proven) return index.find_all(id.length, id.xxh);
  WEFT_TRY(std::optional<BlobPlace> place, index.find(id));
  Rows rows;
  if (place) rows.emplace_back(id, *place);
  return rows;
}

// Answers with the packs that must be open before it can say.
Result<std::vector<PackId>> KnownBlobs::try_look_up(std::span<const ContentId> ids, bool proven,
                                                    std::vector<std::vector<Candidate>>& out) {
  std::vector<PackId> missing;
  WEFT_TRY(std::unique_ptr<BlobIndex> index, index_.read());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    out[i].clear();
    WEFT_TRY(Rows rows, rows_of(*index, ids[i], proven));
    for (const auto& [id, place] : rows) {
      auto pack = held_.find(place.pack);
      if (pack == held_.end()) {
        missing.push_back(place.pack);
        continue;
      }
      Status there = pack->second->check_place(id, place.offset);
      if (!there.ok() && there.error().code == Errc::not_found) {  // removed before its .toc was read: look again
        held_.erase(pack);
        missing.push_back(place.pack);
        continue;
      }
      WEFT_CHECK(std::move(there));
      out[i].push_back({id, {pack->second, place.offset}});
    }
  }
  return missing;
}

Status KnownBlobs::hold(std::span<const PackId> packs) {
  for (PackId id : packs) {
    if (held_.contains(id)) continue;
    auto pack = packs_.open(id);
    if (!pack.ok() && pack.error().code == Errc::not_found) continue;  // compacted away: look again
    if (!pack.ok()) return pack.error();
    (*pack)->prepare();  // now, with no transaction open
    held_.emplace(id, std::move(pack).value());
  }
  return {};
}

Result<std::vector<std::vector<Candidate>>> KnownBlobs::look_up(std::span<const ContentId> ids, bool proven) {
  std::vector<std::vector<Candidate>> out(ids.size());
  std::vector<PackId> missing;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    WEFT_TRY(missing, try_look_up(ids, proven, out));
    if (missing.empty()) return out;
    WEFT_CHECK(hold(missing));
  }
  return Error{Errc::corrupt, fmt::format("pack {}: in the index but not there; run `weft fsck --rebuild`",
                                          pack_name(missing.front()))};
}

Result<std::vector<ContentId>> KnownBlobs::lost() {
  WEFT_TRY(const std::unique_ptr<BlobIndex> index, index_.read());
  std::vector<ContentId> lost;
  for (const auto& [id, place] : shared_) {
    WEFT_TRY(const std::optional<BlobPlace> now, index->find(id));
    if (now) continue;
    WEFT_TRY(const bool absent, index->is_absent(id));  // evicted: the versions that need it can be relied on
    if (!absent) lost.push_back(id);
  }
  return lost;
}

Result<bool> KnownBlobs::any_of_length(std::uint64_t length) {
  WEFT_TRY(std::unique_ptr<BlobIndex> index, index_.read());
  return index->any_of_length(length);
}

}  // namespace weft
