#include "base/page_cache.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/sys.h"

namespace weft {
namespace {

// cachestat(2), which C libraries do not know yet. Its number is the same on every architecture.
constexpr long kCachestat = 451;
struct CachestatRange {
  std::uint64_t offset;
  std::uint64_t length;
};
struct Cachestat {
  std::uint64_t cached;
  std::uint64_t dirty;
  std::uint64_t writeback;
  std::uint64_t evicted;
  std::uint64_t recently_evicted;
};

constexpr std::uint64_t kPiece = 2U << 20U;
constexpr std::uint64_t kPieceMin = 128U << 10U;

}  // namespace

std::uint64_t page_bytes() {
  static const auto bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

Result<std::uint64_t> cached_pages(int fd, std::uint64_t offset, std::uint64_t length) {
  CachestatRange range{offset, length};
  Cachestat found{};
  if (::syscall(kCachestat, fd, &range, &found, 0) != 0) return sys_error(errno, "cachestat");
  return found.cached;
}

// The kernel cuts one request short at the device's readahead or largest transfer, whichever is more: what is missing
// after a call is asked for again, in smaller pieces.
void start_reading(int fd, std::uint64_t offset, std::uint64_t length) {
  std::uint64_t piece = kPiece;
  const std::uint64_t end = offset + length;
  while (offset < end) {
    const std::uint64_t part = std::min(piece, end - offset);
    if (::posix_fadvise(fd, static_cast<off_t>(offset), static_cast<off_t>(part), POSIX_FADV_WILLNEED) != 0) return;
    const auto present = cached_pages(fd, offset, part);
    const std::uint64_t pages = (part + page_bytes() - 1) / page_bytes();
    if (present.ok() && *present < pages && piece > kPieceMin)
      piece = std::max(kPieceMin, piece / 2);
    else
      offset += part;
  }
}

void read_exactly_from_now_on(int fd) {
  ::posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
}

}  // namespace weft
