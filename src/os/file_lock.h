// Locks of the store's lock files: waits for a lock that another process holds, and names that process.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "os/sys.h"
#include "weft/progress.h"
#include "weft/result.h"

namespace weft {

// Waits for the lock, without a time limit. Errc::cancelled, with the holder if it is known, when `patience` ends the
// wait. A process that gets an exclusive lock writes its id and its program into the file, so that others can name it.
Status wait_for_lock(int fd, LockKind kind, const Patience& patience, std::string_view where);
// As wait_for_lock(), without waiting. Errc::busy names the holder if it is known.
Status try_lock(int fd, LockKind kind, std::string_view where);

// One polling wait for a lock, in one thread. fcntl(2) cannot block here: it would miss a signal that arrives just
// before it. `fd` is a descriptor of the lock file.
class LockPolling {
 public:
  LockPolling(int fd, const Patience& patience, std::string_view where, std::chrono::microseconds longest_pause)
      : fd_(fd), patience_(patience), where_(where), longest_pause_(longest_pause) {}
  // Call it after an attempt that found the lock held. Errc::cancelled as in wait_for_lock().
  Status pause();

 private:
  using Clock = std::chrono::steady_clock;
  const int fd_;
  const Patience& patience_;
  const std::string_view where_;
  const std::chrono::microseconds longest_pause_;
  std::chrono::microseconds pause_{100};
  const Clock::time_point begin_ = Clock::now();
  bool told_ = false;
};

// Returns the exclusive holder of this file's lock, as "process 1234 (weft)". Returns "" if no process holds the lock
// exclusively, or if the file names none; shared holders leave no name.
std::string lock_holder(int fd);

// Locks a directory itself, for one process (flock): no file in it or beside it is needed. Does not wait. Errc::busy
// names the holder if it is known. The lock ends with the last copy of the descriptor.
Result<Fd> lock_directory(const std::string& path);

// Locks of byte ranges (fcntl F_OFD_*). They belong to the open file description: copies of a descriptor share them,
// also in other processes, and they end with the last copy. The locked bytes may lie past the end of the file.
struct LockRange {
  std::uint64_t first = 0;
  std::uint64_t count = 0;  // 0: all bytes from `first` on
};
// Does not wait. Errc::busy if another description's lock excludes this one. An exclusive lock needs a descriptor that
// is open for writing, a shared one a descriptor that is open for reading. A lock of the same description is replaced.
Status lock_bytes(int fd, LockKind kind, LockRange range, std::string_view where);
Status unlock_bytes(int fd, LockRange range, std::string_view where);
// True if a lock of this kind would be refused. Takes no lock, so no other process meets one. Any descriptor will do.
Result<bool> excluded(int fd, LockKind kind, LockRange range, std::string_view where);
// Returns an arbitrary lock that would refuse this one; nothing if none would.
Result<std::optional<LockRange>> excluding_lock(int fd, LockKind kind, LockRange range, std::string_view where);

}  // namespace weft
