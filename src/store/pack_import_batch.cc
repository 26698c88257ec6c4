// Importer: extents that fit a window.
#include "store/hash.h"
#include "store/pack_import.h"

namespace weft {
namespace {

// Less is written sooner than another thread is awake.
constexpr std::size_t kWriteAheadMin = 64U << 10U;
// Extents are compared in one job up to so many, or so many bytes.
constexpr std::size_t kCompareExtents = 256;
constexpr std::size_t kCompareBytes = 1U << 20U;

// Neighbours in the window that are neighbours in the pack too: written together.
struct Run {
  PackWriter* pack = nullptr;
  std::uint64_t offset = 0;
  std::span<const std::byte> bytes;

  bool extend(PackWriter* to, std::uint64_t at, std::span<const std::byte> more) {
    if (pack != to || offset + bytes.size() != at || bytes.data() + bytes.size() != more.data()) return false;
    bytes = {bytes.data(), bytes.size() + more.size()};
    return true;
  }
  Status write() const { return bytes.empty() ? Status{} : pack->write(offset, bytes); }
  void start_writing(JobGroup& group) const {
    if (!bytes.empty()) group.run([run = *this] { return run.write(); });
  }
};

}  // namespace

Result<std::size_t> Importer::add_batch(Source& source, std::size_t first) {
  while (!unresolved_.empty() && unresolved_.front() == &ring_.next()) WEFT_CHECK(resolve_oldest());
  WEFT_TRY(ImportWindow * window, ring_.take());
  std::size_t count = window->count_fitting(file_.ranges.subspan(first));
  WEFT_CHECK(window->fill(source, file_.ranges.subspan(first, count), first));
  unresolved_.push_back(window);
  while (!unresolved_.empty() && unresolved_.front()->hashing.idle()) WEFT_CHECK(resolve_oldest());
  return count;
}

Status Importer::resolve_all() {
  while (!unresolved_.empty()) WEFT_CHECK(resolve_oldest());
  return {};
}

Status Importer::resolve_oldest() {
  ImportWindow& window = *unresolved_.front();
  unresolved_.pop_front();
  WEFT_CHECK(window.finish_ids());
  WEFT_TRY(Claims claims, claim_new(window));
  for (const WindowExtent& extent : window.extents)
    file_.extents[extent.range] = {file_.ranges[extent.range].offset, extent.id, head_of(window.bytes_of(extent))};
  return write_new(window, claims);
}

Result<std::vector<StoredBlob>> Importer::look_up(const ImportWindow& window) {
  std::vector<ContentId> ids;
  ids.reserve(window.extents.size());
  for (const WindowExtent& extent : window.extents) ids.push_back(extent.id);
  return known_.look_up(ids);
}

// Afterwards what is known has a place only if the bytes there are the window's.
void Importer::compare_stored(ImportWindow& window, std::vector<StoredBlob>& stored) {
  const auto compare = [&window, &stored](std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; ++i) {
      LockedPlace& place = stored[i].place;
      if (place.pack && !equals_twin(window.bytes_of(window.extents[i]), {place.pack->fd(), place.offset})) place = {};
    }
    return Status{};
  };
  for (std::size_t first = 0, last = 0; first < stored.size(); first = last) {
    std::size_t bytes = 0;
    for (; last < stored.size() && last - first < kCompareExtents && bytes < kCompareBytes; ++last)
      if (stored[last].place.pack) bytes += window.extents[last].id.length;
    if (bytes >= kWriteAheadMin)
      window.hashing.run([compare, first, last] { return compare(first, last); });
    else
      static_cast<void>(compare(first, last));
  }
  static_cast<void>(window.hashing.wait());  // comparing does not fail
}

Result<Claims> Importer::claim_new(ImportWindow& window) {
  WEFT_TRY(std::vector<StoredBlob> stored, look_up(window));
  compare_stored(window, stored);
  Claims claims(window.extents.size());
  for (std::size_t i = 0; i < claims.size(); ++i) {
    const WindowExtent& extent = window.extents[i];
    if (fresh_.find(extent.id)) {
      note_gap(extent.range, {});
    } else if (const LockedPlace& place = stored[i].place; place.pack) {
      known_.share(extent.id, place);
      note_gap(extent.range, Twin{place.pack->fd(), place.offset});
    } else {
      const bool hints = extent.id.length > kDigestChunk;
      const std::uint64_t hint = hints ? xxh3_64(window.bytes_of(extent).first(kDigestChunk)) : 0;
      claims[i] = fresh_.claim(extent.id, hint, stored[i].known);
    }
  }
  return claims;
}

Status Importer::write_new(ImportWindow& window, const Claims& claims) {
  Run run;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    if (!claims[i]) continue;
    WindowExtent& extent = window.extents[i];
    WEFT_TRY(PackSpot spot, next_spot(extent.range));
    fresh_.place(*claims[i], *spot.pack, spot.offset, std::move(extent.chunks));
    if (spot.is_there) continue;
    if (run.extend(spot.pack, spot.offset, window.bytes_of(extent))) continue;
    run.start_writing(window.writing);
    run = {spot.pack, spot.offset, window.bytes_of(extent)};
  }
  if (run.bytes.size() < kWriteAheadMin && ring_.writing_idle()) return run.write();
  run.start_writing(window.writing);
  return {};
}

}  // namespace weft
