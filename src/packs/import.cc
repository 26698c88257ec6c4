#include "packs/import.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>

#include "base/sha256.h"
#include "diskformat/pack_names.h"
#include "os/file_ops.h"
#include "os/sys.h"
#include "packs/blob_check.h"

namespace weft {
namespace {

constexpr std::size_t kManyExtents = 65'536;

// Reads the extents of a file at these places. Returns nothing if some bytes are damaged: their digest would outlive a
// repair. Called by jobs of the pool.
Result<std::optional<Digest>> plain_digest_of(std::span<const Extent> extents, std::span<const Twin> parts,
                                              Progress& progress) {
  std::vector<std::byte> buffer(kDigestChunk);
  Sha256 hash;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    std::vector<Digest> chunks;
    for (std::uint64_t at = 0; at < extents[i].id.length; at += kDigestChunk) {
      if (progress.cancelled()) return Error{Errc::cancelled, "interrupted"};
      const auto step = std::span(buffer).first(std::min<std::uint64_t>(kDigestChunk, extents[i].id.length - at));
      if (!read_exact(parts[i].fd, parts[i].offset + at, step, "pack").ok()) return std::optional<Digest>();
      chunks.push_back(sha256(step));
      hash.update(step);
    }
    if (tree_root(extents[i].id.length, chunks) != extents[i].id.root) return std::optional<Digest>();
  }
  return std::optional(hash.finish());
}

Status check_cover(const Source& source, std::span<const Range> ranges) {
  std::uint64_t end = 0;
  bool touching = true;
  for (const Range& range : ranges) {
    touching = touching && range.length > 0 && range.offset == end && range.length <= source.size() - end;
    if (touching) end += range.length;
  }
  if (touching && end == source.size()) return {};
  return Error{Errc::changed, fmt::format("{}: changed while it was read: its extents end at {}, the file at {}",
                                          source.where(), end, source.size())};
}

}  // namespace

Result<std::unique_ptr<Importer>> Importer::begin(const SafePath& store_path, IndexAccess& index, ImportTuning tuning) {
  WEFT_TRY(std::unique_ptr<TempArea> temp, TempArea::make(store_path));
  return std::unique_ptr<Importer>(new Importer(store_path, index, std::move(tuning), std::move(temp)));
}

Importer::Importer(const SafePath& store_path, IndexAccess& index, ImportTuning tuning, std::unique_ptr<TempArea> temp)
    : packs_(store_path, index),
      tuning_(std::move(tuning)),
      temp_(std::move(temp)),
      in_memory_(tuning_.in_memory && !boot_id().empty()),
      known_(packs_, index),
      fresh_(store_path, temp_->path(), in_memory_),
      pool_(tuning_.threads),
      plain_(pool_),
      ring_(pool_, writer_, tuning_.windows, tuning_.window_bytes),
      file_(fresh_, ring_) {}

Result<std::vector<Extent>> Importer::add(int fd, std::string_view where, std::span<const Range> ranges,
                                          Progress& progress, Take take, const ByteUses& uses) {
  if (spent_) return Error{Errc::internal, fmt::format("{}: this import has failed or is finished", where)};
  spent_ = true;  // reset on success
  WEFT_TRY(Source source, Source::open(fd, where, progress, tuning_.after_read));
  if (uses.seen) source.show_to(uses.seen);
  source.arrive_by(uses.await);
  source.hash_to(plain_.begin(uses.sums));
  WEFT_TRY(std::vector<Extent> extents, add_file(source, ranges, take));
  spent_ = false;
  return extents;
}

Result<std::vector<Extent>> Importer::add_file(Source& source, std::span<const Range> ranges, Take take) {
  WEFT_CHECK(check_cover(source, ranges));
  WEFT_CHECK(file_.begin(source, ranges, take));
  for (std::size_t i = 0; i < ranges.size();) {
    if (ranges[i].length > ring_.next().capacity()) {
      WEFT_CHECK(add_large(source, i));
      ++i;
    } else {
      WEFT_TRY(std::size_t count, add_batch(source, i));
      i += count;
    }
  }
  WEFT_CHECK(resolve_all());
  WEFT_CHECK(file_.finish(source));
  WEFT_CHECK(source.check_unchanged());
  return file_.take_extents();
}

Status Importer::add_large(Source& source, std::size_t range) {
  WEFT_CHECK(resolve_all());
  const Range& here = file_.ranges()[range];
  StreamPlan plan{here, [&](std::uint64_t hint) { return find_candidate(here.length, hint); },
                  [&] { return file_.next_spot(range); }};
  WEFT_TRY(Streamed seen, stream(ring_, source, plan));
  file_.identify(range, seen.id, seen.head);
  // The lists of so many extents take much memory, so free the windows: small extents use little of them.
  if (file_.ranges().size() > kManyExtents) WEFT_CHECK(ring_.shed());
  if (!seen.spot) {
    if (!fresh_.find(seen.id)) known_.share(seen.id, candidate_);
    file_.note_known(range, seen.candidate->twin);
    return {};
  }
  WEFT_TRY(const Stored stored, stored_state(seen));
  if (stored == Stored::intact) {
    file_.drop_written(range, *seen.spot);
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

// Returns the places of the extents. The list is empty if this node lacks one of them.
Result<std::vector<Twin>> Importer::stored_parts(std::span<const Extent> extents) {
  std::vector<ContentId> ids;
  ids.reserve(extents.size());
  for (const Extent& extent : extents) ids.push_back(extent.id);
  WEFT_TRY(const std::vector<StoredBlob> stored, known_.look_up(ids));
  std::vector<Twin> parts;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (const auto number = fresh_.find(ids[i])) {
      parts.push_back({fresh_.pack_of(*number)->fd(), fresh_.place_of(*number).offset});
    } else if (const OpenPlace& place = stored[i].place; place.pack) {
      parts.push_back({place.pack->fd(), place.offset});
    } else {
      return std::vector<Twin>();
    }
  }
  return parts;
}

Result<std::vector<std::optional<Digest>>> Importer::sums_of(std::span<const std::span<const Extent>> files,
                                                             Progress& progress) {
  WEFT_CHECK(ring_.wait_writing());
  std::vector<std::vector<Twin>> parts;
  for (const std::span<const Extent> file : files) {
    WEFT_TRY(parts.emplace_back(), stored_parts(file));
  }
  std::vector<std::optional<Digest>> sums(files.size());
  JobGroup jobs(pool_);
  for (std::size_t i = 0; i < files.size(); ++i)
    if (parts[i].size() == files[i].size())
      jobs.run([&, i]() -> Status {
        WEFT_TRY(sums[i], plain_digest_of(files[i], parts[i], progress));
        return {};
      });
  WEFT_CHECK(jobs.wait());
  return sums;
}

Status Importer::begin_seal() {
  if (spent_) return Error{Errc::internal, "this import has failed or is finished"};
  spent_ = true;
  WEFT_CHECK(ring_.end());
  WEFT_CHECK(fresh_.drop_empty());
  for (const auto& pack : fresh_.packs()) WEFT_CHECK(pack->begin_sync());
  sealing_ = true;
  file_.clear();
  return {};
}

Status Importer::seal() {
  if (!sealing_) WEFT_CHECK(begin_seal());
  if (fresh_.packs().size() == 1) return fresh_.packs().front()->sync();
  JobGroup syncs(pool_);
  for (const auto& pack : fresh_.packs()) syncs.run([&pack] { return pack->sync(); });
  return syncs.wait();
}

Status Importer::store_again(std::span<const ContentId> ids) {
  WEFT_TRY(PackWriter * pack, fresh_.new_pack());
  for (const ContentId& id : ids) WEFT_CHECK(copy_again(id, *pack));
  return pack->sync();
}

Status Importer::copy_again(const ContentId& id, PackWriter& pack) {
  const OpenPlace from = known_.place_of(id);
  const SafePath where = pack_path(packs_.store_path(), from.pack->id());
  const std::uint64_t at = pack.reserve(id.length, from.offset);
  WEFT_TRY(PackEntry entry, copy_hashed(id, from.pack->fd(), from.offset, where, pack, at, no_progress()));
  if (!root_agrees(entry))
    return Error{Errc::corrupt,
                 fmt::format("{}: blob {} at {} is damaged; import again", where, to_hex(id.root), from.offset)};
  fresh_.place(fresh_.claim(id, entry.hint, false), pack, at, std::move(entry.chunks));
  known_.unshare(id);
  return {};
}

Status Importer::hold(std::span<const ContentId> ids) {
  std::vector<ContentId> others;
  for (const ContentId& id : ids)
    if (!fresh_.find(id)) others.push_back(id);
  WEFT_TRY(const std::vector<StoredBlob> stored, known_.look_up(others));
  for (std::size_t i = 0; i < others.size(); ++i)
    if (stored[i].known && !stored[i].place.pack)
      return Error{Errc::corrupt, fmt::format("{}: the blob {} is not where the index says; run `weft fsck --rebuild`",
                                              packs_.store_path(), to_hex(others[i].root))};
  return {};
}

Status Importer::place() {
  for (const auto& pack : fresh_.packs()) WEFT_CHECK(pack->publish());
  return fresh_.packs().empty() ? Status{} : sync_directory(packs_.store_path() / "packs");
}

}  // namespace weft
