#include "packs/import.h"

#include <algorithm>

#include <fmt/core.h>

#include "diskformat/pack_names.h"
#include "os/file_ops.h"
#include "os/sys.h"
#include "packs/blob_check.h"

namespace weft {
namespace {

// A file gets no pack of its own if more bytes of it are known than kKnownMin and than 1 / kKnownShare of its size.
constexpr std::uint64_t kKnownMin = 64U << 10U;
constexpr std::uint64_t kKnownShare = 200;  // 1 / 200 = 0.5 %

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
      ring_(pool_, writer_, tuning_.windows, tuning_.window_bytes) {}

Result<std::vector<Extent>> Importer::add(int fd, std::string_view where, std::span<const Range> ranges,
                                          Progress& progress, Take take, const SeenBytes& seen) {
  if (spent_) return Error{Errc::internal, fmt::format("{}: this import has failed or is finished", where)};
  spent_ = true;  // reset on success
  WEFT_TRY(Source source, Source::open(fd, where, progress, tuning_.after_read));
  if (seen) source.show_to(seen);
  WEFT_TRY(std::vector<Extent> extents, add_file(source, ranges, take));
  spent_ = false;
  return extents;
}

Result<std::vector<Extent>> Importer::add_file(Source& source, std::span<const Range> ranges, Take take) {
  WEFT_CHECK(check_cover(source, ranges));
  WEFT_CHECK(start_file(source, ranges, take));
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
  WEFT_CHECK(finish_file());
  if (file_.taken) WEFT_CHECK(source.stat_again());  // take_in() added a name, which changed the ctime
  WEFT_CHECK(source.check_unchanged());
  return std::move(file_.extents);
}

Status Importer::start_file(Source& source, std::span<const Range> ranges, Take take) {
  file_ = FileState{};
  file_.ranges = ranges;
  file_.extents.resize(ranges.size());
  file_.whole = source.size() >= kWholeFileMin && fresh_.may_have_more();
  file_.known_max = std::max(kKnownMin, source.size() / kKnownShare);
  if (file_.whole && take != Take::copy) WEFT_CHECK(try_take(source, take));
  return file_.whole && !file_.taken ? try_clone(source) : Status{};
}

// Links the file as the pack, in case it is new. A lease detects writers: publish() fails if a process has opened the
// file for writing.
Status Importer::try_take(const Source& source, Take take) {
  WEFT_TRY(PackWriter * pack, fresh_.taken(source.fd(), take));
  if (pack == nullptr) return {};
  file_.own = pack;
  file_.cloned = file_.taken = true;
  return {};
}

// Much of the file is known after all, so the file does not become a pack: moves its new blobs to the mixed pack.
Status Importer::leave_taken() {
  for (const std::size_t number : fresh_.numbers_in(*file_.own)) {
    const ContentId& id = fresh_.id(number);
    const std::uint64_t from = fresh_.place_of(number).offset;
    WEFT_TRY(PackWriter * mixed, fresh_.mixed());
    const std::uint64_t at = mixed->reserve(id.length, from);
    WEFT_CHECK(copy_twin({file_.own->fd(), from}, id.length, {mixed, at}));
    fresh_.move(number, *mixed, at);
  }
  return fresh_.drop(file_.own);
}

// Clones the file if the file system shares blocks and nobody holds the file. The clone becomes the pack if the file is
// new, and it cannot change while it is read. The first clone shows whether blocks can be shared; the second one has
// the bytes that were found unheld. (copy_file_range without sharing would gain nothing: the bytes must be read for
// hashing anyway.)
Status Importer::try_clone(Source& source) {
  if (no_clones_from_ == source.device()) return {};
  WEFT_TRY(PackWriter * pack, fresh_.new_pack());
  if (!clone_file(source.fd(), pack->fd())) {
    no_clones_from_ = source.device();
    return fresh_.drop(pack);
  }
  const auto lease = ReadLease::take(source.fd());
  const bool is_safe = lease && is_unheld(*lease, source.where()) && clone_file(source.fd(), pack->fd());
  if (!is_safe || !lease->holds()) return fresh_.drop(pack);
  WEFT_TRY(struct stat st, stat_fd(pack->fd(), pack->where()));
  if (static_cast<std::uint64_t>(st.st_size) != source.size())
    return Error{Errc::changed, fmt::format("{}: changed while it was read: expected {} bytes, got {}", source.where(),
                                            source.size(), st.st_size)};
  file_.own = pack;
  file_.cloned = true;
  source.read_from(pack->fd());
  return {};
}

void Importer::note_known(std::size_t range) {
  std::uint64_t length = file_.ranges[range].length;
  shared_bytes_ += length;
  file_.known += length;
  if (file_.known > file_.known_max) file_.whole = false;
}

void Importer::note_gap(std::size_t range, std::optional<Twin> stored) {
  note_known(range);
  if (file_.whole && !file_.cloned) file_.gaps.push_back({range, stored});
}

Result<PackSpot> Importer::next_spot(std::size_t range) {
  const Range& here = file_.ranges[range];
  if (file_.whole) {
    if (file_.own == nullptr) {
      WEFT_TRY(file_.own, fresh_.new_pack());
    }
    return PackSpot{file_.own, here.offset, file_.cloned};
  }
  WEFT_TRY(PackWriter * pack, fresh_.mixed());
  return PackSpot{pack, pack->reserve(here.length, here.offset)};
}

Status Importer::finish_file() {
  if (file_.own == nullptr) return {};
  if (file_.whole && !file_.own->empty()) return fill_gaps();
  if (file_.taken) {
    WEFT_CHECK(ring_.wait_writing());
    return leave_taken();
  }
  const bool loose = file_.cloned || file_.loose;
  if (loose || file_.own->empty()) WEFT_CHECK(ring_.wait_writing());
  if (file_.own->empty()) return fresh_.drop(file_.own);
  return loose ? file_.own->prune() : Status{};
}

// Copies the few known ranges from their stored copies, so that the pack equals the file.
Status Importer::fill_gaps() {
  if (!file_.gaps.empty()) WEFT_CHECK(ring_.wait_writing());
  for (const Gap& gap : file_.gaps) {
    Twin from;
    if (gap.stored) {
      from = *gap.stored;
    } else {
      const std::size_t number = *fresh_.find(file_.extents[gap.range].id);
      from = {fresh_.pack_of(number)->fd(), fresh_.place_of(number).offset};
    }
    const Range& range = file_.ranges[gap.range];
    WEFT_CHECK(copy_twin(from, range.length, {file_.own, range.offset}));
  }
  return {};
}

Status Importer::begin_seal() {
  if (spent_) return Error{Errc::internal, "this import has failed or is finished"};
  spent_ = true;
  WEFT_CHECK(ring_.end());
  WEFT_CHECK(fresh_.drop_empty());
  for (const auto& pack : fresh_.packs()) WEFT_CHECK(pack->begin_sync());
  sealing_ = true;
  file_ = FileState{};
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
