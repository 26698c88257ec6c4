#include "base/file_lock.h"

#include <fcntl.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <sstream>
#include <thread>

#include <fmt/core.h>

namespace weft {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kFirstPause = std::chrono::milliseconds(1);
constexpr auto kLongestPause = std::chrono::milliseconds(50);
constexpr auto kQuiet = std::chrono::seconds(1);  // shorter waits are not worth a word

std::string command_of(long pid) {
  std::ifstream comm(fmt::format("/proc/{}/comm", pid));
  std::string name;
  std::getline(comm, name);
  return name;
}

std::string held_by(int fd) {
  std::string holder = lock_holder(fd);
  return holder.empty() ? "somebody else" : holder;
}

}  // namespace

// Lines of /proc/locks: "1: FLOCK  ADVISORY  WRITE 1234 fd:01:5678 0 EOF"; waiters have "->" before FLOCK.
std::string lock_holder(int fd) {
  struct stat st {};
  if (::fstat(fd, &st) != 0) return "";
  std::string file = fmt::format("{:02x}:{:02x}:{}", major(st.st_dev), minor(st.st_dev), st.st_ino);
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    std::istringstream words(line);
    std::string number, kind, advisory, access, place;
    long pid = 0;
    if (words >> number >> kind >> advisory >> access >> pid >> place && kind == "FLOCK" && place == file && pid > 0)
      return fmt::format("process {} ({})", pid, command_of(pid));
  }
  return "";
}

// Polls where it can be ended: a signal that comes just before flock(2) blocks would not wake it.
Status wait_for_lock(int fd, LockKind kind, const Patience& patience, std::string_view where) {
  if (!patience.cancelled) return lock_fd(fd, kind, LockWait::yes, where);
  auto begin = Clock::now();
  auto pause = kFirstPause;
  bool told = false;
  for (;;) {
    Status status = lock_fd(fd, kind, LockWait::no, where);
    if (status.ok() || status.error().code != Errc::busy) return status;
    if (patience.cancelled())
      return Error{Errc::cancelled,
                   fmt::format("{}: given up waiting for its lock, which {} holds", where, held_by(fd))};
    if (!told && patience.waiting && Clock::now() - begin > kQuiet) {
      patience.waiting(fmt::format("waiting for {}, which {} holds", where, held_by(fd)));
      told = true;
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, kLongestPause);
  }
}

namespace {

// As struct flock has it: a length of 0 reaches to the end of all files.
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
  struct flock words = words_of(type_of(kind), range);
  if (::fcntl(fd, F_OFD_GETLK, &words) == 0) return words.l_type != F_UNLCK;
  return sys_error(errno, named(range, where));
}

}  // namespace weft
