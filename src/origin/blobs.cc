#include "origin/blobs.h"

#include <algorithm>
#include <iterator>

#include <fmt/core.h>

#include "origin/copy.h"

namespace weft {

const OriginBlobs::Blob* OriginBlobs::want(const ContentId& id, const std::optional<BlobPlace>& recorded) {
  const auto [at, fresh] = wanted_.try_emplace(id);
  if (!fresh) return &*at;
  if (recorded)
    recorded_[recorded->pack].emplace_back(id, recorded->offset);
  else
    astray_.insert(id);
  return &*at;
}

void OriginBlobs::fault(std::string what, std::vector<ContentId> blobs) {
  for (const ContentId& id : blobs)
    if (wanted_.at(id).pack == 0) astray_.insert(id);
  faults_.push_back({std::move(what), std::move(blobs)});
}

Status OriginBlobs::search(Progress& progress) {
  for (const auto& [pack, blobs] : std::exchange(recorded_, {})) WEFT_CHECK(search_recorded(pack, blobs, progress));
  WEFT_CHECK(search_all(progress));
  count_unfound();
  return {};
}

Status OriginBlobs::search_recorded(PackId pack, const std::vector<Recorded>& blobs, Progress& progress) {
  WEFT_CHECK(check_cancelled(progress));
  auto toc = origin_.toc(pack);
  if (!toc.ok()) {
    std::vector<ContentId> all;
    for (const auto& [id, offset] : blobs) all.push_back(id);
    fault(toc.error().message, std::move(all));
    WEFT_TRY(toc, read_again(pack, blobs, progress));
  }
  std::map<Recorded, PackEntry*> listed;
  for (PackEntry& entry : toc->entries) listed.emplace(Recorded(entry.id, entry.offset), &entry);
  for (const Recorded& blob : blobs) {
    const auto at = listed.find(blob);
    if (at != listed.end()) {
      astray_.erase(blob.first);
      take(pack, std::move(*at->second));
    } else if (!astray_.contains(blob.first)) {
      fault(fmt::format("{}: lists no {} bytes with digest {} at {}", origin_toc_name(origin_.path(), pack),
                        blob.first.length, to_hex(blob.first.root), blob.second),
            {blob.first});
    }
  }
  return {};
}

// Computes a table of contents from the pack's bytes: the blobs whose digests match at their recorded offsets.
Result<PackToc> OriginBlobs::read_again(PackId pack, const std::vector<Recorded>& blobs, Progress& progress) const {
  PackToc toc;
  toc.pack = pack;
  const auto fd = origin_.open_pack(pack);
  if (!fd.ok()) return toc;
  for (const auto& [id, offset] : blobs) {
    auto entry = hash_blob(fd->get(), id, offset, progress);
    if (entry.ok()) toc.entries.push_back(std::move(entry).value());
    WEFT_CHECK(check_cancelled(progress));
  }
  std::ranges::sort(toc.entries, {}, &PackEntry::offset);
  std::uint64_t end = 0;
  std::erase_if(toc.entries, [&end](const PackEntry& entry) {  // entries of a table must not overlap
    const bool overlaps = entry.offset < end;
    if (!overlaps) end = entry.offset + entry.id.length;
    return overlaps;
  });
  return toc;
}

Status OriginBlobs::search_all(Progress& progress) {
  if (astray_.empty()) return {};
  WEFT_TRY(const auto packs, origin_.packs());
  for (const PackId pack : packs) {
    if (astray_.empty()) return {};
    WEFT_CHECK(check_cancelled(progress));
    auto toc = origin_.toc(pack);
    if (!toc.ok()) continue;
    for (PackEntry& entry : toc->entries)
      if (!refuted_.contains({pack, entry.id}) && astray_.erase(entry.id) != 0) take(pack, std::move(entry));
  }
  for (const ContentId& id : std::exchange(astray_, {})) wanted_.at(id) = {0, true};
  return {};
}

void OriginBlobs::take(PackId pack, PackEntry entry) {
  wanted_.at(entry.id).pack = pack;
  PackToc& toc = packs_[pack];
  toc.pack = pack;
  toc.entries.push_back(std::move(entry));
  grown_.insert(pack);
}

void OriginBlobs::count_unfound() {
  for (const PackId pack : grown_) {
    PackToc& toc = packs_.at(pack);
    std::ranges::sort(toc.entries, {}, &PackEntry::offset);
    toc.size = toc.entries.empty() ? 0 : toc.entries.back().offset + toc.entries.back().id.length;
  }
}

void OriginBlobs::not_whole(PackId pack, std::string what, const std::vector<ContentId>& blobs) {
  PackToc& toc = packs_.at(pack);
  for (const ContentId& id : blobs) {
    refuted_.emplace(pack, id);
    wanted_.at(id).pack = 0;
  }
  std::erase_if(toc.entries, [&](const PackEntry& entry) { return refuted_.contains({pack, entry.id}); });
  fault(std::move(what), blobs);
}

std::vector<std::string> OriginBlobs::take_losses() {
  const auto lossless = [this](const Fault& fault) {
    return std::ranges::none_of(fault.blobs, [this](const ContentId& id) { return is_lost(id); });
  };
  const auto lost = std::stable_partition(faults_.begin(), faults_.end(), lossless);
  std::vector<std::string> losses;
  std::transform(lost, faults_.end(), std::back_inserter(losses), [](Fault& fault) { return std::move(fault.what); });
  faults_.erase(lost, faults_.end());
  return losses;
}

std::vector<std::string> OriginBlobs::mended() const {
  std::vector<std::string> mended;
  for (const Fault& fault : faults_) mended.push_back(fmt::format("{}; found whole all the same", fault.what));
  return mended;
}

}  // namespace weft
