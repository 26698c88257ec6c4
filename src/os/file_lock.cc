#include "os/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <thread>

#include <fmt/core.h>

#include "base/text.h"

namespace weft {
namespace {

constexpr auto kLongestPause = std::chrono::milliseconds(50);
constexpr auto kQuiet = std::chrono::seconds(1);  // shorter waits are not reported
constexpr std::size_t kLocksMax = 16U << 20U;     // bytes of /proc/locks
constexpr std::size_t kNoteMax = 64;              // size of the note that names the holder

std::string held_by(int fd) {
  std::string holder = lock_holder(fd);
  return holder.empty() ? "another process" : holder;
}

std::string read_note(int fd) {
  std::array<char, kNoteMax> note{};
  const auto got = read_some(fd, 0, std::as_writable_bytes(std::span(note)), "lock");
  return got.ok() ? std::string(note.data(), *got) : std::string();
}

// Best effort: without a note, a message lacks the holder's name. A correct note is not written again, so that a lock
// taken for each commit adds nothing to the bytes that the commit syncs.
void write_note(int fd) {
  const std::string note =
      fmt::format("{} {}\n", ::getpid(), std::string_view(program_invocation_short_name).substr(0, kNoteMax / 2));
  if (read_note(fd) == note || ::ftruncate(fd, 0) != 0) return;
  static_cast<void>(write_exact(fd, 0, std::as_bytes(std::span(note)), "lock"));
}

Status lock_and_note(int fd, LockKind kind, LockWait wait, std::string_view where) {
  WEFT_CHECK(lock_fd(fd, kind, wait, where));
  if (kind == LockKind::exclusive) write_note(fd);
  return {};
}

}  // namespace

std::string lock_holder(int fd) {
  const auto exclusively = excluded(fd, LockKind::shared, {}, "lock");
  if (!exclusively.ok() || !*exclusively) return "";  // the note names an earlier holder
  const std::string note = read_note(fd);
  const std::size_t space = note.find(' ');
  if (space == std::string::npos || !note.ends_with('\n')) return "";
  long pid = 0;
  const auto [stop, failure] = std::from_chars(note.data(), note.data() + space, pid);
  if (failure != std::errc() || stop != note.data() + space || pid <= 0) return "";
  return fmt::format("process {} ({})", pid, printable(note.substr(space + 1, note.size() - space - 2)));
}

Status try_lock(int fd, LockKind kind, std::string_view where) {
  Status status = lock_and_note(fd, kind, LockWait::no, where);
  if (status.ok() || status.error().code != Errc::busy) return status;
  return Error{Errc::busy, fmt::format("{}: {} holds its lock", where, held_by(fd))};
}

namespace {

// Finds the holder of a lock of flock(2) in /proc/locks, whose lines are such as
// "7: FLOCK  ADVISORY  WRITE 1234 08:01:5678 0 EOF".
std::string directory_holder(const Fd& directory) {
  const auto st = stat_fd(directory.get(), "lock");
  const auto text = read_kernel_file("/proc/locks", kLocksMax);
  if (!st.ok() || !text.ok()) return "another process";
  const std::string place = fmt::format(" {:02x}:{:02x}:{} ", major(st->st_dev), minor(st->st_dev), st->st_ino);
  for (std::string_view line : split(*text, '\n')) {
    const std::size_t end = line.find(place);
    if (end == std::string_view::npos || line.find(" FLOCK ") == std::string_view::npos) continue;
    const std::string_view pid = line.substr(0, end).substr(line.substr(0, end).rfind(' ') + 1);
    return fmt::format("process {}", printable(pid));
  }
  return "another process";
}

}  // namespace

Result<Fd> lock_directory(const std::string& path) {
  WEFT_TRY(Fd directory, open_file(path, O_RDONLY | O_DIRECTORY));
  if (::flock(directory.get(), LOCK_EX | LOCK_NB) == 0) return directory;
  Error error = sys_error(errno, fmt::format("{}: lock", path));
  if (error.code != Errc::busy) return error;
  return Error{Errc::busy, fmt::format("{}: {} holds its lock", path, directory_holder(directory))};
}

Status LockPolling::pause() {
  if (patience_.cancelled && patience_.cancelled())
    return Error{Errc::cancelled,
                 fmt::format("{}: given up waiting for its lock, which {} holds", where_, held_by(fd_))};
  if (!told_ && patience_.waiting && Clock::now() - begin_ > kQuiet) {
    patience_.waiting(fmt::format("waiting for {}, which {} holds", where_, held_by(fd_)));
    told_ = true;
  }
  std::this_thread::sleep_for(pause_);
  pause_ = std::min(pause_ * 2, longest_pause_);
  return {};
}

// Polls if the wait can be cancelled.
Status wait_for_lock(int fd, LockKind kind, const Patience& patience, std::string_view where) {
  if (!patience.cancelled) return lock_and_note(fd, kind, LockWait::yes, where);
  for (LockPolling polling(fd, patience, where, kLongestPause);;) {
    Status status = lock_and_note(fd, kind, LockWait::no, where);
    if (status.ok() || status.error().code != Errc::busy) return status;
    WEFT_CHECK(polling.pause());
  }
}

namespace {

// Converts to struct flock, in which a length of 0 reaches to the largest possible offset.
struct flock words_of(short type, LockRange range) {
  struct flock words {};
  words.l_type = type;
  words.l_whence = SEEK_SET;
  words.l_start = static_cast<off_t>(range.first);
  words.l_len = static_cast<off_t>(range.count);
  return words;
}

short type_of(LockKind kind) {
  return kind == LockKind::shared ? F_RDLCK : F_WRLCK;
}

std::string named(LockRange range, std::string_view where) {
  return range.count == 1 ? fmt::format("{}: lock of byte {}", where, range.first) : fmt::format("{}: lock", where);
}

}  // namespace

Status lock_bytes(int fd, LockKind kind, LockRange range, std::string_view where) {
  struct flock words = words_of(type_of(kind), range);
  if (::fcntl(fd, F_OFD_SETLK, &words) == 0) return {};
  return sys_error(errno, named(range, where));
}

Status unlock_bytes(int fd, LockRange range, std::string_view where) {
  struct flock words = words_of(F_UNLCK, range);
  if (::fcntl(fd, F_OFD_SETLK, &words) == 0) return {};
  return sys_error(errno, named(range, where));
}

Result<bool> excluded(int fd, LockKind kind, LockRange range, std::string_view where) {
  WEFT_TRY(const auto lock, excluding_lock(fd, kind, range, where));
  return lock.has_value();
}

Result<std::optional<LockRange>> excluding_lock(int fd, LockKind kind, LockRange range, std::string_view where) {
  struct flock words = words_of(type_of(kind), range);
  if (::fcntl(fd, F_OFD_GETLK, &words) != 0) return sys_error(errno, named(range, where));
  if (words.l_type == F_UNLCK) return std::optional<LockRange>();
  return std::optional(LockRange{static_cast<std::uint64_t>(words.l_start), static_cast<std::uint64_t>(words.l_len)});
}

}  // namespace weft
