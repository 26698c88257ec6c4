// Importer: extents that fit a window.
#include "diskformat/hash.h"
#include "packs/import.h"

namespace weft {
namespace {

// Writing less than this takes less time than waking another thread.
constexpr std::size_t kWriteAheadMin = 64U << 10U;
// The limits of one compare job.
constexpr std::size_t kCompareExtents = 256;
constexpr std::size_t kCompareBytes = 1U << 20U;

// A run of extents that are adjacent in the window and in the pack, for one write.
struct ImportRun {
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

// Compares the previous window while this one is filled, so that the threads work on several windows at once.
Result<std::size_t> Importer::add_batch(Source& source, std::size_t first) {
  WEFT_CHECK(look_up_hashed());
  while (!unresolved_.empty() && unresolved_.front().window == &ring_.next()) WEFT_CHECK(resolve_oldest());
  WEFT_TRY(ImportWindow * window, ring_.take());
  WEFT_CHECK(look_up_hashed());
  std::size_t count = window->count_fitting(file_.ranges().subspan(first));
  WEFT_CHECK(window->fill(source, file_.ranges().subspan(first, count), first));
  unresolved_.push_back({window, false, {}});
  WEFT_CHECK(resolve_ready());
  return count;
}

// Called before this thread waits or reads, so that the pool has compare jobs meanwhile.
Status Importer::look_up_hashed() {
  for (FilledWindow& filled : unresolved_)
    if (!filled.looked_up && filled.window->hashing.idle()) WEFT_CHECK(look_up(filled));
  return {};
}

Status Importer::resolve_ready() {
  WEFT_CHECK(look_up_hashed());
  while (!unresolved_.empty() && unresolved_.front().looked_up && unresolved_.front().window->hashing.idle())
    WEFT_CHECK(resolve_oldest());
  return {};
}

Status Importer::resolve_all() {
  for (FilledWindow& filled : unresolved_)
    if (!filled.looked_up) WEFT_CHECK(look_up(filled));
  while (!unresolved_.empty()) WEFT_CHECK(resolve_oldest());
  return {};
}

Status Importer::resolve_oldest() {
  if (!unresolved_.front().looked_up) WEFT_CHECK(look_up(unresolved_.front()));
  ImportWindow& window = *unresolved_.front().window;
  WEFT_CHECK(window.hashing.wait());  // for all compare jobs
  const Claims claims = claim_new(unresolved_.front());
  unresolved_.pop_front();
  for (const WindowExtent& extent : window.extents)
    file_.identify(extent.range, extent.id, head_of(window.bytes_of(extent)));
  return write_new(window, claims);
}

Status Importer::look_up(FilledWindow& filled) {
  WEFT_CHECK(filled.window->finish_ids());
  std::vector<ContentId> ids;
  ids.reserve(filled.window->extents.size());
  for (const WindowExtent& extent : filled.window->extents) ids.push_back(extent.id);
  WEFT_TRY(filled.stored, known_.look_up(ids));
  filled.looked_up = true;
  start_comparing(filled);
  return {};
}

// Starts the compare jobs. They clear the place of each known blob whose stored bytes differ from the window's.
void Importer::start_comparing(FilledWindow& filled) {
  const auto compare = [&filled](std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; ++i) {
      OpenPlace& place = filled.stored[i].place;
      const auto bytes = filled.window->bytes_of(filled.window->extents[i]);
      if (place.pack && !equals_twin(bytes, {place.pack->fd(), place.offset})) place = {};
    }
    return Status{};
  };
  for (std::size_t first = 0, last = 0; first < filled.stored.size(); first = last) {
    std::size_t bytes = 0;
    for (; last < filled.stored.size() && last - first < kCompareExtents && bytes < kCompareBytes; ++last)
      if (filled.stored[last].place.pack) bytes += filled.window->extents[last].id.length;
    if (bytes >= kWriteAheadMin)
      filled.window->hashing.run([compare, first, last] { return compare(first, last); });
    else
      static_cast<void>(compare(first, last));
  }
}

Claims Importer::claim_new(const FilledWindow& filled) {
  Claims claims(filled.stored.size());
  for (std::size_t i = 0; i < claims.size(); ++i) {
    const WindowExtent& extent = filled.window->extents[i];
    if (fresh_.find(extent.id)) {
      file_.note_known(extent.range, {});
    } else if (const OpenPlace& place = filled.stored[i].place; place.pack) {
      known_.share(extent.id, place);
      file_.note_known(extent.range, Twin{place.pack->fd(), place.offset});
    } else {
      const bool hints = extent.id.length > kDigestChunk;
      const std::uint64_t hint = hints ? xxh3_64(filled.window->bytes_of(extent).first(kDigestChunk)) : 0;
      claims[i] = fresh_.claim(extent.id, hint, filled.stored[i].known);
    }
  }
  return claims;
}

Status Importer::write_new(ImportWindow& window, const Claims& claims) {
  ImportRun run;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    if (!claims[i]) continue;
    WindowExtent& extent = window.extents[i];
    WEFT_TRY(PackSpot spot, file_.next_spot(extent.range));
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
