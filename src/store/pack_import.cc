#include "store/pack_import.h"

#include <algorithm>

#include <fmt/core.h>

#include "base/sys.h"
#include "store/file_ops.h"

namespace weft {
namespace {

// "Nothing large is known" of a file: at most so much of it.
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

Digest unused_root(std::span<const Digest> taken) {
  for (std::uint64_t count = 0;; ++count) {
    Digest root;
    for (unsigned i = 0; i < 8; ++i) root.bytes[i] = static_cast<std::uint8_t>(count >> (8U * i));
    if (std::find(taken.begin(), taken.end(), root) == taken.end()) return root;
  }
}

Result<std::unique_ptr<PackImport>> PackImport::begin(const std::string& store_path, DigestMode digest,
                                                      IndexAccess& index, Patience patience) {
  ImportTuning tuning;
  tuning.patience = std::move(patience);
  WEFT_TRY(std::unique_ptr<Importer> import, Importer::begin(store_path, digest, index, std::move(tuning)));
  return std::unique_ptr<PackImport>(std::move(import));
}

Result<std::unique_ptr<Importer>> Importer::begin(const std::string& store_path, DigestMode digest, IndexAccess& index,
                                                  ImportTuning tuning) {
  WEFT_TRY(std::unique_ptr<TempArea> temp, TempArea::make(store_path));
  return std::unique_ptr<Importer>(new Importer(store_path, digest, index, std::move(tuning), std::move(temp)));
}

Importer::Importer(const std::string& store_path, DigestMode digest, IndexAccess& index, ImportTuning tuning,
                   std::unique_ptr<TempArea> temp)
    : packs_(store_path, digest, index, tuning.patience),
      tuning_(std::move(tuning)),
      temp_(std::move(temp)),
      known_(packs_, index),
      fresh_(store_path, temp_->path()),
      pool_(tuning_.threads),
      ring_(pool_, writer_, tuning_.windows, tuning_.window_bytes) {}

Result<std::vector<ContentId>> Importer::add(int fd, std::string_view where, std::span<const Range> ranges,
                                             Progress& progress) {
  if (spent_) return Error{Errc::internal, fmt::format("{}: this import has failed or is finished", where)};
  spent_ = true;  // until it is known to have gone well
  WEFT_TRY(Source source, Source::open(fd, where, progress, tuning_.after_read));
  WEFT_TRY(std::vector<ContentId> ids, add_file(source, ranges));
  spent_ = false;
  return ids;
}

Result<std::vector<ContentId>> Importer::add_file(Source& source, std::span<const Range> ranges) {
  WEFT_CHECK(check_cover(source, ranges));
  WEFT_CHECK(start_file(source, ranges));
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
  WEFT_CHECK(finish_file(source));
  WEFT_CHECK(source.check_unchanged());
  return std::move(file_.ids);
}

Status Importer::start_file(Source& source, std::span<const Range> ranges) {
  file_ = FileState{};
  file_.ranges = ranges;
  file_.ids.resize(ranges.size());
  file_.whole = source.size() >= kWholeFileMin;
  file_.known_max = std::max(kKnownMin, source.size() / kKnownShare);
  return file_.whole ? try_clone(source) : Status{};
}

// Where the file system shares blocks, the clone is the pack, if the file turns out to be new, and in any case nobody
// changes it while we read. (copy_file_range without sharing would gain nothing: the bytes must come by here anyway.)
Status Importer::try_clone(Source& source) {
  if (no_clones_from_ == source.device()) return {};
  WEFT_TRY(PackWriter * pack, fresh_.new_pack());
  if (!clone_file(source.fd(), pack->fd())) {
    no_clones_from_ = source.device();
    return fresh_.drop(pack);
  }
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
  file_.gaps.push_back(range);
  if (file_.known > file_.known_max) file_.whole = false;
}

Result<Importer::Spot> Importer::next_spot(std::size_t range) {
  if (file_.whole) {
    if (file_.own == nullptr) {
      WEFT_TRY(file_.own, fresh_.new_pack());
    }
    return Spot{file_.own, file_.ranges[range].offset};
  }
  WEFT_TRY(PackWriter * pack, fresh_.mixed());
  return Spot{pack, pack->reserve(file_.ranges[range].length, file_.ranges[range].offset)};
}

Status Importer::finish_file(Source& source) {
  if (file_.own == nullptr) return {};
  if (file_.own->empty()) return fresh_.drop(file_.own);
  if (file_.whole) return file_.cloned ? Status{} : fill_gaps(source);
  return file_.cloned ? file_.own->prune() : Status{};
}

// The little that is known is written again, so that the pack equals the file.
Status Importer::fill_gaps(Source& source) {
  for (std::size_t gap : file_.gaps) {
    const Range& range = file_.ranges[gap];
    WEFT_TRY(Streamed again, stream(ring_, source, {range, proves(), file_.own, range.offset, {}}));
    bool same = again.id.xxh == file_.ids[gap].xxh && (!proves() || again.id.root == file_.ids[gap].root);
    if (!same) return Error{Errc::changed, fmt::format("{}: changed while it was read", source.where())};
  }
  return {};
}

Status Importer::seal() {
  if (spent_) return Error{Errc::internal, "this import has failed or is finished"};
  spent_ = true;
  WEFT_CHECK(ring_.wait_writing());
  for (const auto& pack : fresh_.packs()) WEFT_CHECK(pack->begin_sync());
  if (fresh_.packs().size() == 1) return fresh_.packs().front()->sync();
  JobGroup syncs(pool_);
  for (const auto& pack : fresh_.packs()) syncs.run([&pack] { return pack->sync(); });
  return syncs.wait();
}

Status Importer::hold(std::span<const ContentId> ids) {
  auto held = known_.look_up(ids, proves());
  return held.ok() ? Status{} : Status{std::move(held).error()};
}

Status Importer::place() {
  for (const auto& pack : fresh_.packs()) WEFT_CHECK(pack->publish());
  return fresh_.packs().empty() ? Status{} : sync_directory(packs_.store_path() + "/packs");
}

}  // namespace weft
