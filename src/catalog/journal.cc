#include "catalog/journal.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include <fmt/core.h>

#include "catalog/journal_marks.h"

namespace weft {
namespace {

Status cut(int fd, std::uint64_t size, std::string_view path) {
  WEFT_TRY(struct stat st, stat_fd(fd, path));
  if (static_cast<std::uint64_t>(st.st_size) <= size) return {};
  if (::ftruncate(fd, static_cast<off_t>(size)) != 0) return sys_error(errno, fmt::format("{}: truncate", path));
  return {};
}

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
  auto st = stat_file(path_);
  if (!st.ok() && st.error().code == Errc::not_found) return std::uint64_t{0};  // lost: the copy may have it
  if (!st.ok()) return std::move(st).error();
  return static_cast<std::uint64_t>(st->st_size);
}

Result<std::optional<Counters>> Journal::mark() const {
  auto copy = open_file(copy_path_, O_RDONLY);
  if (!copy.ok() && copy.error().code == Errc::not_found) return std::optional<Counters>();
  if (!copy.ok()) return std::move(copy).error();
  return last_mark(copy->get(), copy_path_);
}

// A writer that died has written to the .log alone. The marks' blocks are written out, so that a mark needs no room.
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
  marked = true;  // or in part, from here on
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

// Written once more: a sync that fails may have dropped what it was to write.
Status Journal::settle(std::uint64_t begin, const Counters& counters) const {
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
  // Without a mark no writer replays a record that could not be cut off.
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

}  // namespace weft
