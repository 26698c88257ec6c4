// Importer: extents that are larger than a window.
#include <algorithm>
#include <atomic>

#include "base/sha256.h"
#include "os/sys.h"
#include "packs/import.h"

namespace weft {
namespace {

constexpr std::size_t kManyExtents = 65'536;

}  // namespace

Status Importer::add_large(Source& source, std::size_t range) {
  WEFT_CHECK(resolve_all());
  const Range& here = file_.ranges[range];
  StreamPlan plan{here, [&](std::uint64_t hint) { return find_candidate(here.length, hint); },
                  [&] { return next_spot(range); }};
  WEFT_TRY(Streamed seen, stream(ring_, source, plan));
  file_.extents[range] = {here.offset, seen.id, seen.head};
  // The lists of so many extents take much memory, so free the windows: small extents use little of them.
  if (file_.ranges.size() > kManyExtents) WEFT_CHECK(ring_.shed());
  if (!seen.spot) {
    if (!fresh_.find(seen.id)) known_.share(seen.id, candidate_);
    note_gap(range, seen.candidate->twin);
    return {};
  }
  WEFT_TRY(const Stored stored, stored_state(seen));
  if (stored == Stored::intact) {
    drop_written(range, *seen.spot);
    return {};
  }
  const std::size_t number = fresh_.claim(seen.id, seen.hint, stored == Stored::damaged);
  fresh_.place(number, *seen.spot->pack, seen.spot->offset, std::move(seen.chunks));
  return {};
}

Result<std::optional<Candidate>> Importer::find_candidate(std::uint64_t length, std::uint64_t hint) {
  if (const auto number = fresh_.find_hinted(length, hint)) {
    WEFT_CHECK(ring_.wait_writing());
    const Twin twin{fresh_.pack_of(*number)->fd(), fresh_.place_of(*number).offset};
    return std::optional(Candidate{fresh_.id(*number), twin});
  }
  WEFT_TRY(const std::optional<ContentId> id, known_.hinted(length, hint));
  if (!id) return std::optional<Candidate>();
  WEFT_TRY(const std::vector<StoredBlob> stored, known_.look_up(std::span(&*id, 1)));
  const OpenPlace& place = stored.front().place;
  if (!place.pack) return std::optional<Candidate>();
  candidate_ = place;
  return std::optional(Candidate{*id, {place.pack->fd(), place.offset}});
}

// Returns whether the store has this content. Called after the content was written because no equal stored bytes were
// found.
Result<Importer::Stored> Importer::stored_state(const Streamed& seen) {
  if (fresh_.find(seen.id)) return Stored::intact;
  WEFT_TRY(const std::vector<StoredBlob> stored, known_.look_up(std::span(&seen.id, 1)));
  if (!stored.front().known) return Stored::unknown;
  const bool differed = seen.candidate && seen.candidate->id == seen.id;
  const OpenPlace& place = stored.front().place;
  if (differed || !place.pack || !is_intact(place, seen)) return Stored::damaged;
  known_.share(seen.id, place);
  return Stored::intact;
}

bool Importer::is_intact(const OpenPlace& place, const Streamed& seen) {
  std::atomic<bool> intact{true};
  pool_.parallel_for(seen.chunks.size(), [&](std::size_t chunk) {
    if (!intact) return;
    const std::uint64_t at = chunk * kDigestChunk;
    std::vector<std::byte> bytes(std::min<std::uint64_t>(kDigestChunk, seen.id.length - at));
    const bool read = read_exact(place.pack->fd(), place.offset + at, bytes, "pack").ok();
    if (!read || sha256(bytes) != seen.chunks[chunk]) intact = false;
  });
  return intact;
}

// Drops bytes that were written although their content is known.
void Importer::drop_written(std::size_t range, const PackSpot& spot) {
  note_known(range);
  if (spot.pack == file_.own)
    file_.loose = true;  // finish_file() keeps them as part of the file, or prunes them
  else
    spot.pack->give_back(spot.offset);
}

}  // namespace weft
