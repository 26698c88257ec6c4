#include "fetch/fetch_planner.h"

#include <algorithm>

#include <fmt/core.h>

#include "base/log.h"
#include "base/text.h"
#include "blobs/open_blobs.h"
#include "diskformat/toc.h"
#include "fetch/passing_bytes.h"
#include "weft/bytes/run_list.h"
#include "weft/store/walk.h"

namespace weft {
namespace {

constexpr auto kCloseWait = std::chrono::seconds(2);
constexpr auto kCloseTick = std::chrono::milliseconds(250);

// True if the pack is free at the offsets of all missing extents. Files with a common prefix can differ later.
bool has_room(const PackToc& toc, std::span<const Extent> absent) {
  return std::ranges::none_of(absent, [&toc](const Extent& extent) {
    return overlaps_any(toc.entries, {extent.offset, extent.id.length});
  });
}

// Returns a pack that keeps nothing if the disk has no space for a new file.
Result<std::unique_ptr<FetchPack>> new_pack(FetchedCache& cache, std::uint64_t size) {
  auto pack = cache.fetch_pack(size);
  if (pack.ok() || pack.error().code != Errc::no_space) return pack;
  return pass_only_pack(size);
}

}  // namespace

Result<std::vector<RangePart>> FetchPlanner::parts_of(const DecodedVersion& content, std::uint32_t file, Range range) {
  const File& published = content.manifest.files[file];
  const auto [first, end] = runs_in(published.extents, range);
  std::vector<RangePart> parts;
  std::vector<ContentId> blobs;
  for (std::size_t i = first; i < end; ++i) {
    parts.push_back({published.extents[i]});
    blobs.push_back(published.extents[i].id);
  }
  // Check transfers before the index: a finished blob enters the index before it leaves its transfer.
  {
    const MutexLock lock(state_.mutex);
    for (RangePart& part : parts) set_home(part, content.row.id, file);
  }
  WEFT_TRY(auto places, open_present_blobs(store_, blobs));
  for (std::size_t i = 0; i < parts.size(); ++i) parts[i].place = std::move(places[i]);
  if (std::any_of(parts.begin(), parts.end(),
                  [](const RangePart& part) { return !part.place.pack && !part.home.transfer; }))
    WEFT_CHECK(find_homes(content, file, parts));
  return parts;
}

bool FetchPlanner::set_home(RangePart& part, VersionId version, std::uint32_t file) const {
  const TransferPlace* home = state_.table.find(part.extent.id);
  if (home == nullptr) return false;
  part.home = *home;
  part.same_file = part.home.transfer->version == version && part.home.transfer->file == file;
  return true;
}

Status FetchPlanner::find_homes(const DecodedVersion& content, std::uint32_t file, std::vector<RangePart>& parts) {
  const MutexLock planning(planning_);
  const auto lacks = [&](RangePart& part) {
    if (part.place.pack || part.home.transfer) return false;
    const MutexLock lock(state_.mutex);
    return !set_home(part, content.row.id, file);
  };
  if (std::none_of(parts.begin(), parts.end(), lacks)) return {};
  WEFT_CHECK(begin_transfer(content, file));
  for (RangePart& part : parts)
    if (lacks(part)) {
      auto place = store_.open_blob(part.extent.id);
      if (!place.ok()) return place.error();
      part.place = std::move(place).value();
    }
  return {};
}

void FetchPlanner::expect(const DecodedVersion& content, const std::vector<Extent>& absent) const {
  std::vector<ContentId> blobs;
  blobs.reserve(absent.size());
  for (const Extent& extent : absent) blobs.push_back(extent.id);
  sources_.expect(content.row, blobs);
}

Status FetchPlanner::begin(const DecodedVersion& content, std::uint32_t file) {
  const MutexLock planning(planning_);
  return begin_transfer(content, file);
}

Status FetchPlanner::begin_transfer(const DecodedVersion& content, std::uint32_t file) {
  limit_open();
  if (!is_grouped(content.manifest.files[file])) return begin_file(content, file);
  WEFT_TRY(const bool grouped, begin_group(content, group_of(content.groups, file)));
  return grouped ? Status{} : begin_file(content, file);
}

Status FetchPlanner::begin_file(const DecodedVersion& content, std::uint32_t file) {
  const File& published = content.manifest.files[file];
  std::vector<ContentId> blobs;
  for (const Extent& extent : published.extents) blobs.push_back(extent.id);
  WEFT_TRY(const auto places, open_present_blobs(store_, blobs));
  std::vector<Extent> absent;
  {
    const MutexLock lock(state_.mutex);
    for (std::size_t i = 0; i < blobs.size(); ++i)
      if (!places[i].pack && state_.table.find(blobs[i]) == nullptr) absent.push_back(published.extents[i]);
  }
  if (absent.empty()) return {};
  expect(content, absent);
  WEFT_TRY(auto pack, pack_for(published, places, absent));
  return add_transfer(content, file, plan_fetch(absent), std::move(pack));
}

// Begins a transfer of a group. False if the missing blobs belong to a single file, whose pack is better laid out as
// the file.
Result<bool> FetchPlanner::begin_group(const DecodedVersion& content, FileGroup group) {
  std::vector<std::pair<std::uint32_t, Extent>> unknown;
  {
    const MutexLock lock(state_.mutex);  // before the index: blobs leave the table once they are in it
    for (std::uint32_t file = group.first; file < group.end; ++file) {
      if (!is_grouped(content.manifest.files[file])) continue;
      for (const Extent& extent : content.manifest.files[file].extents)
        if (state_.table.find(extent.id) == nullptr) unknown.emplace_back(file, extent);
    }
  }
  std::vector<Extent> absent;
  std::optional<std::uint32_t> first;
  bool several = false;
  Renewed renewed(store_);
  for (const auto& [file, extent] : unknown) {
    WEFT_TRY(Snapshot * now, renewed.get());
    const auto place = now->find_blob(extent.id);
    if (place.ok() || place.error().code != Errc::absent) continue;
    several = several || first.value_or(file) != file;
    first = file;
    absent.push_back(extent);
  }
  renewed.end();
  if (!several) return false;
  expect(content, absent);
  FetchPlan plan = plan_group(absent);
  WEFT_TRY(auto pack, new_pack(cache_, plan.size()));
  WEFT_CHECK(add_transfer(content, {}, std::move(plan), std::move(pack)));
  return true;
}

Status FetchPlanner::add_transfer(const DecodedVersion& content, std::optional<std::uint32_t> file, FetchPlan plan,
                                  std::unique_ptr<FetchPack> pack) {
  WEFT_TRY(auto hold, store_.hold_version(content.row.id));
  WEFT_TRY(auto transfer, Transfer::make(content.row.id, file, content.row.manifest, std::move(plan), std::move(pack),
                                         std::move(hold)));
  transfer->subject = fmt::format("{}@{}", content.row.model_name, content.row.number);
  if (file) transfer->subject += ": " + content.manifest.files[*file].path;
  transfer->bases = bases_.choose(content);
  transfer->expect_comparisons();
  transfer->publisher = content.row.publisher;
  if (options_.has_member(transfer->publisher))
    transfer->young_until =
        Clock::now() + std::min<Clock::duration>(options_.patience, youth_left(content.row, now_ns()));
  transfer->may_swarm = options_.swarms != nullptr && SwarmFetch::may_bring(*transfer, content.bytes);
  log_debug(LogCategory::fetch, "transfer {} begins: {}, {} blobs in {} units", transfer->log_id, transfer->subject,
            transfer->plan.blobs.size(), transfer->plan.units.size());
  const MutexLock lock(state_.mutex);
  state_.table.add(transfer);
  return {};
}

// Returns the pack to fill. Reuses a pack that already holds a part of this file, and nothing else: the finished pack
// has the layout of the file.
Result<std::unique_ptr<FetchPack>> FetchPlanner::pack_for(const File& file, std::span<const OpenPlace> places,
                                                          std::span<const Extent> absent) {
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (!places[i].pack) continue;
    const PackReader& pack = *places[i].pack;
    if (places[i].offset != file.extents[i].offset || pack.size() != file.size) break;
    {
      const MutexLock lock(state_.mutex);
      if (state_.table.fills(pack.id())) break;
    }
    const auto toc = read_toc_of(store_.directory(), pack.id());
    if (!toc.ok() || !has_room(*toc, absent)) break;
    auto resumed = cache_.resume_fetch(pack.id());
    if (resumed.ok()) return resumed;
    break;
  }
  return new_pack(cache_, file.size);
}

// Keeps the number of open transfers, and so of descriptors, within its bound: closes complete and unread ones. While
// readers use all of them, the bound is exceeded.
void FetchPlanner::limit_open() {
  UniqueLock lock(state_.mutex);
  for (const auto until = Clock::now() + kCloseWait; state_.table.size() >= kOpenTransfersMax && !state_.ending;) {
    if (!state_.table.close_unread() || Clock::now() >= until || state_.table.size() < kOpenTransfersMax) return;
    state_.keep.notify_one();
    state_.arrived.wait_for(lock, kCloseTick);
  }
}

}  // namespace weft
