#include "packs/imported_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "os/file_ops.h"
#include "os/sys.h"

namespace weft {
namespace {

// A file gets no pack of its own if more bytes of it are known than kKnownMin and than 1 / kKnownShare of its size.
constexpr std::uint64_t kKnownMin = 64U << 10U;
constexpr std::uint64_t kKnownShare = 200;  // 1 / 200 = 0.5 %

}  // namespace

Status ImportedFile::begin(Source& source, std::span<const Range> ranges, Take take) {
  clear();
  file_.ranges = ranges;
  file_.extents.resize(ranges.size());
  file_.whole = source.size() >= kWholeFileMin && fresh_.may_have_more();
  file_.known_max = std::max(kKnownMin, source.size() / kKnownShare);
  if (file_.whole && take != Take::copy) WEFT_CHECK(try_take(source, take));
  return file_.whole && !file_.taken && !source.arrives() ? try_clone(source) : Status{};
}

// Links the file as the pack, in case it is new. A lease detects writers: publish() fails if a process has opened the
// file for writing. A file that arrives is only prepared for that.
Status ImportedFile::try_take(const Source& source, Take take) {
  WEFT_TRY(PackWriter * pack, fresh_.taken(source, take));
  if (pack == nullptr) return {};
  file_.own = pack;
  file_.cloned = file_.taken = true;
  return {};
}

// Much of the file is known after all, so the file does not become a pack: moves its new blobs to the mixed pack.
Status ImportedFile::leave_taken() {
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
Status ImportedFile::try_clone(Source& source) {
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

void ImportedFile::identify(std::size_t range, const ContentId& id, std::uint64_t head) {
  file_.extents[range] = {file_.ranges[range].offset, id, head};
}

void ImportedFile::count_known(std::size_t range) {
  const std::uint64_t length = file_.ranges[range].length;
  shared_bytes_ += length;
  file_.known += length;
  if (file_.known > file_.known_max) file_.whole = false;
}

void ImportedFile::note_known(std::size_t range, std::optional<Twin> stored) {
  count_known(range);
  if (file_.whole && !file_.cloned) file_.gaps.push_back({range, stored});
}

void ImportedFile::drop_written(std::size_t range, const PackSpot& spot) {
  count_known(range);
  if (spot.pack == file_.own)
    file_.loose = true;  // finish() keeps them as part of the file, or prunes them
  else
    spot.pack->give_back(spot.offset);
}

Result<PackSpot> ImportedFile::next_spot(std::size_t range) {
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

Status ImportedFile::finish(Source& source) {
  if (file_.taken && source.arrives()) WEFT_CHECK(file_.own->hold());  // before stored bytes are copied from it
  WEFT_CHECK(finish_packs());
  return file_.taken ? source.stat_again() : Status{};  // the second name changed the ctime
}

Status ImportedFile::finish_packs() {
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
Status ImportedFile::fill_gaps() {
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

}  // namespace weft
