// Locks of the store's lock files: waiting for one that another process holds, and naming that process.
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

// Waits for the lock as long as it takes. Errc::cancelled, with the holder where it is known, when `patience` ends. Who
// gets a lock exclusively writes its process id and program into the file, so that others can name it.
Status wait_for_lock(int fd, LockKind kind, const Patience& patience, std::string_view where);
// The same without waiting. Errc::busy names the holder where it is known.
Status try_lock(int fd, LockKind kind, std::string_view where);

// One wait for a lock that is polled for: a signal that comes just before fcntl(2) blocks would not wake it. `fd` is of
// the file that is waited for. For one thread.
class LockPolling {
 public:
  LockPolling(int fd, const Patience& patience, std::string_view where, std::chrono::microseconds longest_pause)
      : fd_(fd), patience_(patience), where_(where), longest_pause_(longest_pause) {}
  // After a look that found it held. Errc::cancelled as wait_for_lock.
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

// "process 1234 (weft)", of the one that holds the lock of this file exclusively. "" when nobody does, when only shared
// locks are held, which have no name, or when the file does not say.
std::string lock_holder(int fd);

// Locks of byte ranges, which are the open file description's (fcntl F_OFD_*): copies of a descriptor share them, also
// in other processes, and they end with the last copy. A file need not be as long as its locked bytes.
struct LockRange {
  std::uint64_t first = 0;
  std::uint64_t count = 0;  // 0: all bytes from `first` on
};
// Does not wait. Errc::busy if another description's lock excludes this one. An exclusive lock needs a descriptor that
// is open for writing, a shared one a descriptor that is open for reading. A lock of the same description is replaced.
Status lock_bytes(int fd, LockKind kind, LockRange range, std::string_view where);
Status unlock_bytes(int fd, LockRange range, std::string_view where);
// Whether a lock of this kind would be refused. Takes none, so nobody else meets it; any descriptor will do.
Result<bool> excluded(int fd, LockKind kind, LockRange range, std::string_view where);
// One of the locks that would refuse it, whichever.
Result<std::optional<LockRange>> excluding_lock(int fd, LockKind kind, LockRange range, std::string_view where);

}  // namespace weft
