// Reading the journal from both of its copies, and making them equal again.
#include <fcntl.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include <fmt/core.h>

#include "catalog/journal.h"
#include "catalog/journal_marks.h"
#include "diskformat/record.h"

namespace weft {
namespace {

using Span = std::span<const std::byte>;

// One of the two files. One that is not there is empty.
class JournalCopy {
 public:
  static Result<JournalCopy> open(const SafePath& path, std::uint64_t header, std::uint64_t end);
  Span from(std::uint64_t at) const { return bytes_.subspan(std::min<std::uint64_t>(at, bytes_.size())); }
  std::uint64_t size() const { return bytes_.size(); }
  const SafePath& path() const { return path_; }
  bool has(std::uint64_t at, Span record) const {
    Span here = from(at);
    return here.size() >= record.size() && std::memcmp(here.data(), record.data(), record.size()) == 0;
  }

 private:
  SafePath path_;
  MappedFile file_;
  Span bytes_;  // of the records
};

Result<JournalCopy> JournalCopy::open(const SafePath& path, std::uint64_t header, std::uint64_t end) {
  JournalCopy copy;
  copy.path_ = path;
  auto fd = open_file(path, O_RDONLY);
  if (!fd.ok() && fd.error().code == Errc::not_found) return copy;
  if (!fd.ok()) return std::move(fd).error();
  WEFT_TRY(struct stat st, stat_fd(fd->get(), path));
  WEFT_TRY(copy.file_, MappedFile::map(fd->get(), static_cast<std::uint64_t>(st.st_size), path));
  Span all = copy.file_.bytes();
  copy.bytes_ = all.subspan(std::min<std::uint64_t>(header, all.size()));
  copy.bytes_ = copy.bytes_.first(std::min<std::uint64_t>(end, copy.bytes_.size()));
  return copy;
}

struct Found {
  Event event;
  Span record;
};

// The record that stands here, if one does. Errc::unsupported: one of another version of weft.
Result<std::optional<Found>> record_at(const JournalCopy& copy, std::uint64_t at) {
  Span bytes = copy.from(at);
  std::optional<std::size_t> length = looks_like_event(bytes) ? record_length(bytes) : std::nullopt;
  if (!length) return std::optional<Found>();
  auto placed = decode_event(bytes.first(*length), fmt::format("{}: record at {}", copy.path(), at));
  if (!placed.ok() && placed.error().code == Errc::unsupported) return std::move(placed).error();
  if (!placed.ok() || placed->place != at) return std::optional<Found>();
  return std::optional(Found{std::move(placed->event), bytes.first(*length)});
}

class JournalReading {
 public:
  JournalReading(const JournalCopy& log, const JournalCopy& copy, std::uint64_t begin) : log_(log), copy_(copy) {
    tail_.end = begin;
    tail_.size = std::max(log.size(), copy.size());
  }
  Result<JournalTail> run();

 private:
  Result<bool> step(std::uint64_t at);
  void keep(Found found, std::uint64_t at);
  void note(const JournalCopy& damaged, std::uint64_t at, std::size_t length);
  Result<std::optional<std::uint64_t>> next_record(std::uint64_t at) const;

  const JournalCopy& log_;
  const JournalCopy& copy_;
  JournalTail tail_;
};

void JournalReading::keep(Found found, std::uint64_t at) {
  tail_.end = at + found.record.size();
  tail_.events.push_back({std::move(found.event), at, tail_.end});
}

void JournalReading::note(const JournalCopy& damaged, std::uint64_t at, std::size_t length) {
  tail_.damage.push_back(
      fmt::format("{}: a record of {} bytes at {} is damaged, and whole in the other copy; run `weft fsck --rebuild`",
                  damaged.path(), length, at));
}

// Whether a record stands here in one of the copies. A copy that ends too early was not written yet.
Result<bool> JournalReading::step(std::uint64_t at) {
  WEFT_TRY(std::optional<Found> found, record_at(log_, at));
  if (found) {
    if (copy_.size() >= at + found->record.size() && !copy_.has(at, found->record))
      note(copy_, at, found->record.size());
    keep(std::move(*found), at);
    return true;
  }
  WEFT_TRY(found, record_at(copy_, at));
  if (!found) return false;
  note(log_, at, found->record.size());
  keep(std::move(*found), at);
  return true;
}

Result<std::optional<std::uint64_t>> JournalReading::next_record(std::uint64_t at) const {
  for (++at; at < tail_.size; ++at)
    for (const JournalCopy* copy : {&log_, &copy_}) {
      WEFT_TRY(std::optional<Found> found, record_at(*copy, at));
      if (found) return std::optional(at);
    }
  return std::optional<std::uint64_t>();
}

Result<JournalTail> JournalReading::run() {
  while (tail_.end < tail_.size) {
    std::uint64_t at = tail_.end;
    WEFT_TRY(bool found, step(at));
    if (found) continue;
    WEFT_TRY(std::optional<std::uint64_t> next, next_record(at));
    if (!next) break;
    tail_.gaps.push_back({at, *next - at});
    tail_.end = *next;
  }
  return std::move(tail_);
}

}  // namespace

Result<JournalTail> Journal::read(std::uint64_t begin, std::uint64_t end) const {
  WEFT_TRY(JournalCopy log, JournalCopy::open(path_, 0, end));
  WEFT_TRY(JournalCopy copy, JournalCopy::open(copy_path_, kMarksBytes, end));
  return JournalReading(log, copy, begin).run();
}

Status Journal::mend(std::uint64_t end, const Counters& counters) const {
  WEFT_TRY(JournalCopy log, JournalCopy::open(path_, 0, end));
  WEFT_TRY(JournalCopy copy, JournalCopy::open(copy_path_, kMarksBytes, end));
  WEFT_TRY(JournalTail whole, JournalReading(log, copy, 0).run());
  WEFT_TRY(Fd log_fd, open_file(path_, O_WRONLY | O_CREAT));
  WEFT_TRY(Fd copy_fd, open_file(copy_path_, O_RDWR | O_CREAT));
  WEFT_CHECK(write_exact(copy_fd.get(), kMarksBytes + copy.size(), log.from(copy.size()), copy_path_));
  WEFT_CHECK(write_exact(log_fd.get(), log.size(), copy.from(log.size()), path_));
  for (const JournaledEvent& event : whole.events) {
    WEFT_TRY(std::optional<Found> good, record_at(log, event.begin));
    if (good) {
      WEFT_CHECK(write_exact(copy_fd.get(), kMarksBytes + event.begin, good->record, copy_path_));
      continue;
    }
    WEFT_TRY(good, record_at(copy, event.begin));
    if (good) WEFT_CHECK(write_exact(log_fd.get(), event.begin, good->record, path_));
  }
  WEFT_CHECK(put_mark(copy_fd.get(), counters, copy_path_));
  WEFT_CHECK(put_mark(copy_fd.get(), counters, copy_path_));  // both: the one before may be damaged
  WEFT_CHECK(sync_file(copy_fd.get(), copy_path_));
  WEFT_CHECK(sync_file(log_fd.get(), path_));
  return sync_directory(dir_);
}

}  // namespace weft
