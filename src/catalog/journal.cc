#include "catalog/journal.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/core.h>

#include "diskformat/record.h"
#include "os/entries.h"
#include "os/page_cache.h"

namespace weft {
namespace {

constexpr std::uint64_t kMarkMax = 512;  // largest record of a mark, bytes

// The two marks at the beginning of the .copy; empty if damaged.
using Marks = std::array<std::optional<Counters>, 2>;

Result<Marks> read_marks(int fd, std::string_view where) {
  Marks marks;
  for (std::size_t i = 0; i < marks.size(); ++i) {
    std::vector<std::byte> bytes(kMarkMax);
    WEFT_TRY(std::size_t got, read_some(fd, i * kMarkBlock, bytes, where));
    bytes.resize(got);
    std::optional<std::size_t> length = record_length(bytes);
    if (!length) continue;
    bytes.resize(*length);
    auto payload = open_record(RecordKind::counters, bytes, where);
    if (!payload.ok() && payload.error().code == Errc::unsupported) return std::move(payload).error();
    if (!payload.ok()) continue;
    auto counters = decode_row<Counters>(*payload, where);
    if (counters.ok()) marks[i] = *counters;
  }
  return marks;
}

std::uint64_t reach(const std::optional<Counters>& mark) {
  return mark ? mark->journal_end : 0;
}

Status write_mark(int fd, std::size_t slot, const Counters& counters, std::string_view where) {
  return write_exact(fd, slot * kMarkBlock, seal_record(RecordKind::counters, encode_row(counters)), where);
}

// Returns the mark with the larger journal_end; nothing if both are damaged.
Result<std::optional<Counters>> last_mark(int fd, std::string_view where) {
  WEFT_TRY(Marks marks, read_marks(fd, where));
  return reach(marks[0]) >= reach(marks[1]) && marks[0] ? marks[0] : marks[1];
}

// Overwrites the older mark, so that a torn write leaves the last one intact.
Status put_mark(int fd, const Counters& counters, std::string_view where) {
  WEFT_TRY(Marks marks, read_marks(fd, where));
  bool first = !marks[0] || (marks[1] && reach(marks[0]) < reach(marks[1]));
  return write_mark(fd, first ? 0 : 1, counters, where);
}

// Lowers the journal_end of marks to at most this; their other counters stay.
Status pull_marks_back(int fd, std::uint64_t journal_end, std::string_view where) {
  WEFT_TRY(Marks marks, read_marks(fd, where));
  for (std::size_t i = 0; i < marks.size(); ++i) {
    if (reach(marks[i]) <= journal_end) continue;
    marks[i]->journal_end = journal_end;
    WEFT_CHECK(write_mark(fd, i, *marks[i], where));
  }
  return {};
}

Status cut(int fd, std::uint64_t size, std::string_view path) {
  WEFT_TRY(struct stat st, stat_fd(fd, path));
  if (static_cast<std::uint64_t>(st.st_size) <= size) return {};
  return resize_file(fd, size, fmt::format("{}: truncate", path));
}

using Span = std::span<const std::byte>;

constexpr std::uint64_t kUnloadBytes = 8U << 20U;

// One of the two files, mapped. A missing file counts as empty.
class JournalCopy {
 public:
  static Result<JournalCopy> open(const SafePath& path, std::uint64_t header, std::uint64_t end) {
    JournalCopy copy;
    copy.path_ = path;
    WEFT_TRY(auto fd, if_there(open_file(path, O_RDONLY)));
    if (!fd) return copy;
    WEFT_TRY(struct stat st, stat_fd(fd->get(), path));
    WEFT_TRY(copy.file_, MappedFile::map(fd->get(), static_cast<std::uint64_t>(st.st_size), path));
    Span all = copy.file_.bytes();
    copy.bytes_ = all.subspan(std::min<std::uint64_t>(header, all.size()));
    copy.bytes_ = copy.bytes_.first(std::min<std::uint64_t>(end, copy.bytes_.size()));
    return copy;
  }

  Span from(std::uint64_t at) const { return bytes_.subspan(std::min<std::uint64_t>(at, bytes_.size())); }
  std::uint64_t size() const { return bytes_.size(); }
  const SafePath& path() const { return path_; }
  void unload(std::uint64_t end) const { unload_mapped(bytes_.data(), std::min<std::uint64_t>(end, bytes_.size())); }
  bool has(std::uint64_t at, Span record) const {
    Span here = from(at);
    return here.size() >= record.size() && std::memcmp(here.data(), record.data(), record.size()) == 0;
  }

 private:
  SafePath path_;
  MappedFile file_;
  Span bytes_;  // the records
};

struct Found {
  Event event;
  Span record;
};

// Returns the record at offset `at`; nothing if there is no intact one. Errc::unsupported: the record is of another
// version of weft.
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
  JournalReading(const JournalCopy& log, const JournalCopy& copy, std::uint64_t begin, const Journal::Visit& visit)
      : log_(log), copy_(copy), visit_(visit) {
    state_.end = begin;
    state_.size = std::max(log.size(), copy.size());
  }

  Result<JournalState> run() {
    std::uint64_t unloaded = state_.end;
    while (state_.end < state_.size) {
      std::uint64_t at = state_.end;
      WEFT_TRY(bool found, step(at));
      if (state_.end >= unloaded + kUnloadBytes) unload(unloaded = state_.end);
      if (found) continue;
      WEFT_TRY(std::optional<std::uint64_t> next, next_record(at));
      if (!next) break;
      state_.gaps.push_back({at, *next - at});
      state_.end = *next;
    }
    return std::move(state_);
  }

 private:
  // Visits the record at `at`, from whichever copy is intact. False if neither has one. A .copy that ends before the
  // record is not damaged: the record was not copied yet.
  Result<bool> step(std::uint64_t at) {
    WEFT_TRY(std::optional<Found> found, record_at(log_, at));
    if (found) {
      if (copy_.size() >= at + found->record.size() && !copy_.has(at, found->record))
        note(copy_, at, found->record.size());
      return pass_on(std::move(*found), at);
    }
    WEFT_TRY(found, record_at(copy_, at));
    if (!found) return false;
    note(log_, at, found->record.size());
    return pass_on(std::move(*found), at);
  }

  // Unmaps the pages that were read, so that they do not count as memory of this process. They stay in the page cache.
  void unload(std::uint64_t end) const {
    log_.unload(end);
    copy_.unload(end);
  }

  // Passes a record to the visitor. Always true.
  Result<bool> pass_on(Found found, std::uint64_t at) {
    state_.end = at + found.record.size();
    WEFT_CHECK(visit_({std::move(found.event), at, state_.end}));
    return true;
  }

  void note(const JournalCopy& damaged, std::uint64_t at, std::size_t length) {
    state_.damage.push_back(
        fmt::format("{}: a record of {} bytes at {} is damaged, and whole in the other copy; run `weft fsck --rebuild`",
                    damaged.path(), length, at));
  }

  Result<std::optional<std::uint64_t>> next_record(std::uint64_t at) const {
    for (++at; at < state_.size; ++at)
      for (const JournalCopy* copy : {&log_, &copy_}) {
        WEFT_TRY(std::optional<Found> found, record_at(*copy, at));
        if (found) return std::optional(at);
      }
    return std::optional<std::uint64_t>();
  }

  const JournalCopy& log_;
  const JournalCopy& copy_;
  const Journal::Visit& visit_;
  JournalState state_;
};

}  // namespace

Error not_known(const Error& failure) {
  return Error{failure.code, fmt::format("{}; whether it was done is not known: see `weft log`", failure.message)};
}

Journal::Journal(const SafePath& store_path)
    : dir_((store_path / "journal").held()),
      path_(dir_ / "0000000000000001.log"),
      copy_path_(dir_ / "0000000000000001.copy") {}

Status Journal::create() {
  WEFT_CHECK(make_directories(dir_));
  WEFT_TRY(Fd log, open_file(path_, O_WRONLY | O_CREAT));
  WEFT_CHECK(sync_file(log.get(), path_));
  WEFT_TRY(Fd copy, open_file(copy_path_, O_RDWR | O_CREAT));
  WEFT_CHECK(fill_copy(copy.get(), 0));
  WEFT_CHECK(put_mark(copy.get(), Counters{}, copy_path_));
  WEFT_CHECK(sync_file(copy.get(), copy_path_));
  return sync_directory(dir_);
}

Result<std::uint64_t> Journal::size() const {
  WEFT_TRY(auto st, if_there(stat_file(path_)));
  if (!st) return std::uint64_t{0};  // lost; the .copy may be intact
  return static_cast<std::uint64_t>(st->st_size);
}

Result<std::optional<Counters>> Journal::mark() const {
  WEFT_TRY(auto copy, if_there(open_file(copy_path_, O_RDONLY)));
  if (!copy) return std::optional<Counters>();
  return last_mark(copy->get(), copy_path_);
}

// Copies records that a writer that died had written only to the .log. Writes out the blocks of the marks first, so
// that a mark needs no new space.
Status Journal::fill_copy(int copy, std::uint64_t end) const {
  WEFT_TRY(struct stat st, stat_fd(copy, copy_path_));
  auto size = static_cast<std::uint64_t>(st.st_size);
  if (size < kMarksBytes) {
    WEFT_CHECK(write_exact(copy, size, std::vector<std::byte>(kMarksBytes - size), copy_path_));
    size = kMarksBytes;
  }
  if (size >= kMarksBytes + end) return {};
  std::uint64_t from = size - kMarksBytes;
  WEFT_TRY(Fd log, open_file(path_, O_RDONLY));
  std::vector<std::byte> missing(end - from);
  WEFT_CHECK(read_exact(log.get(), from, missing, path_));
  return write_exact(copy, size, missing, copy_path_);
}

Status Journal::write_copy(std::uint64_t at, std::span<const std::byte> record, const Counters& counters,
                           bool& marked) const {
  WEFT_TRY(Fd copy, open_file(copy_path_, O_RDWR | O_CREAT));
  WEFT_CHECK(fill_copy(copy.get(), at));
  WEFT_CHECK(write_exact(copy.get(), kMarksBytes + at, record, copy_path_));
  marked = true;  // perhaps in part, if this fails
  WEFT_CHECK(put_mark(copy.get(), counters, copy_path_));
  return sync_file(copy.get(), copy_path_);
}

Status Journal::write(std::span<const std::byte> record, const Counters& counters) const {
  std::uint64_t at = counters.journal_end - record.size();
  WEFT_TRY(Fd log, open_file(path_, O_WRONLY));
  Status status = write_exact(log.get(), at, record, path_);
  if (!status.ok()) static_cast<void>(truncate(at));
  return status;
}

// Writes the records again before the sync: an earlier failed sync may have dropped their dirty pages.
Status Journal::flush(std::uint64_t begin, const Counters& counters) const {
  if (begin >= counters.journal_end) return {};
  WEFT_TRY(Fd log, open_file(path_, O_RDWR));
  std::vector<std::byte> records(counters.journal_end - begin);
  WEFT_CHECK(read_exact(log.get(), begin, records, path_));
  WEFT_CHECK(write_exact(log.get(), begin, records, path_));
  WEFT_CHECK(sync_file(log.get(), path_));
  bool marked = false;
  return write_copy(begin, records, counters, marked);
}

Status Journal::append(std::span<const std::byte> record, const Counters& counters) const {
  std::uint64_t at = counters.journal_end - record.size();
  WEFT_TRY(Fd log, open_file(path_, O_WRONLY));
  Status status = write_exact(log.get(), at, record, path_);
  if (status.ok()) status = sync_file(log.get(), path_);
  bool marked = false;
  if (status.ok()) status = write_copy(at, record, counters, marked);
  if (status.ok()) return {};
  // Without a mark no writer replays the record, even if the truncation fails.
  if (const Status cut = truncate(at); !cut.ok() && marked) return not_known(status.error());
  return status;
}

Status Journal::truncate(std::uint64_t size) const {
  WEFT_TRY(Fd copy, open_file(copy_path_, O_RDWR | O_CREAT));
  WEFT_CHECK(pull_marks_back(copy.get(), size, copy_path_));
  WEFT_CHECK(cut(copy.get(), kMarksBytes + size, copy_path_));
  WEFT_CHECK(sync_file(copy.get(), copy_path_));
  WEFT_TRY(Fd log, open_file(path_, O_WRONLY | O_CREAT));
  WEFT_CHECK(cut(log.get(), size, path_));
  return sync_file(log.get(), path_);
}

Result<JournalState> Journal::each(std::uint64_t begin, std::uint64_t end, const Visit& visit) const {
  WEFT_TRY(JournalCopy log, JournalCopy::open(path_, 0, end));
  WEFT_TRY(JournalCopy copy, JournalCopy::open(copy_path_, kMarksBytes, end));
  return JournalReading(log, copy, begin, visit).run();
}

Result<JournalTail> Journal::read(std::uint64_t begin, std::uint64_t end) const {
  JournalTail tail;
  WEFT_TRY(static_cast<JournalState&>(tail), each(begin, end, [&tail](JournaledEvent event) -> Status {
             tail.events.push_back(std::move(event));
             return {};
           }));
  return tail;
}

Status Journal::mend(std::uint64_t end, const Counters& counters) const {
  WEFT_TRY(JournalCopy log, JournalCopy::open(path_, 0, end));
  WEFT_TRY(JournalCopy copy, JournalCopy::open(copy_path_, kMarksBytes, end));
  WEFT_TRY(Fd log_fd, open_file(path_, O_WRONLY | O_CREAT));
  WEFT_TRY(Fd copy_fd, open_file(copy_path_, O_RDWR | O_CREAT));
  WEFT_CHECK(write_exact(copy_fd.get(), kMarksBytes + copy.size(), log.from(copy.size()), copy_path_));
  WEFT_CHECK(write_exact(log_fd.get(), log.size(), copy.from(log.size()), path_));
  const auto even_out = [&](const JournaledEvent& event) -> Status {
    WEFT_TRY(std::optional<Found> good, record_at(log, event.begin));
    if (good) return write_exact(copy_fd.get(), kMarksBytes + event.begin, good->record, copy_path_);
    WEFT_TRY(good, record_at(copy, event.begin));
    return good ? write_exact(log_fd.get(), event.begin, good->record, path_) : Status{};
  };
  auto whole = JournalReading(log, copy, 0, even_out).run();
  if (!whole.ok()) return std::move(whole).error();
  WEFT_CHECK(put_mark(copy_fd.get(), counters, copy_path_));
  WEFT_CHECK(put_mark(copy_fd.get(), counters, copy_path_));  // once per slot: the older mark may be damaged
  WEFT_CHECK(sync_file(copy_fd.get(), copy_path_));
  WEFT_CHECK(sync_file(log_fd.get(), path_));
  return sync_directory(dir_);
}

}  // namespace weft
