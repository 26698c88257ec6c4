#include "index/queue.h"

#include <fcntl.h>

#include <chrono>

#include "os/file_lock.h"

namespace weft {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr auto kLongestPause = std::chrono::microseconds(2'000);  // shorter than a commit
constexpr auto kStoppedAfter = std::chrono::seconds(1);
constexpr LockRange kDoor{0, 1};

// Returns 0 if no writer waits. A lock without an end belongs to another program.
Result<std::uint64_t> last_ticket(int fd, std::string_view path) {
  for (std::uint64_t last = 0;;) {
    WEFT_TRY(const auto held, excluding_lock(fd, LockKind::exclusive, {last + 1, 0}, path));
    if (!held) return last;
    if (held->count == 0) return Error{Errc::busy, std::string(path) + ": another program holds all of its bytes"};
    last = held->first + held->count - 1;
  }
}

Status open_door(int fd, const Patience& patience, std::string_view path) {
  for (LockPolling polling(fd, patience, path, kLongestPause);;) {
    Status status = lock_bytes(fd, LockKind::exclusive, kDoor, path);
    if (status.ok() || status.error().code != Errc::busy) return status;
    WEFT_CHECK(polling.pause());
  }
}

}  // namespace

Result<QueueTicket> QueueTicket::take(const SafePath& index_dir, const Patience& patience) {
  const SafePath path = index_dir / "queue";
  WEFT_TRY(Fd fd, open_file(path, O_RDWR | O_CREAT, 0600));
  WEFT_CHECK(open_door(fd.get(), patience, path));
  WEFT_TRY(const std::uint64_t last, last_ticket(fd.get(), path));
  WEFT_CHECK(lock_bytes(fd.get(), LockKind::exclusive, {last + 1, 1}, path));
  WEFT_CHECK(unlock_bytes(fd.get(), kDoor, path));
  return QueueTicket(path, std::move(fd), last + 1);
}

Result<bool> QueueTicket::is_first() const {
  if (number_ == 1) return true;
  WEFT_TRY(const bool earlier, excluded(fd_.get(), LockKind::exclusive, {1, number_ - 1}, path_));
  return !earlier;
}

Status wait_for_writer(const SafePath& index_dir, int writer, const Patience& patience) {
  const SafePath path = index_dir / "writer";
  WEFT_TRY(const QueueTicket ticket, QueueTicket::take(index_dir, patience));
  SteadyClock::time_point held_last = SteadyClock::now();
  for (LockPolling polling(writer, patience, path, kLongestPause);;) {
    WEFT_TRY(const bool first, ticket.is_first());
    WEFT_TRY(const bool held, excluded(writer, LockKind::exclusive, {}, path));
    if (held) held_last = SteadyClock::now();
    if (!held && (first || SteadyClock::now() - held_last > kStoppedAfter)) {
      Status status = try_lock(writer, LockKind::exclusive, path);
      if (status.ok() || status.error().code != Errc::busy) return status;
    }
    WEFT_CHECK(polling.pause());
  }
}

}  // namespace weft
