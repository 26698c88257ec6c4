#include "os/page_cache.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>

#include "os/fault_guard.h"
#include "os/sys.h"

namespace weft {
namespace {

// cachestat(2), for which C libraries have no function yet. Its number is the same on every architecture.
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

// Returns the number of pages that contain [offset, offset + length).
std::uint64_t pages_of(std::uint64_t offset, std::uint64_t length) {
  return (offset % page_bytes() + length + page_bytes() - 1) / page_bytes();
}

// True if the processor's large pages have kLargePage bytes (x86-64, arm64 with small pages).
bool has_large_pages() {
  std::uint64_t size = 0;
  return std::ifstream("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size") >> size && size == kLargePage;
}

// True if the range is a whole large page. The last large page of a file may be shorter.
bool is_large_page(int fd, std::uint64_t offset, std::uint64_t length) {
  if (offset % kLargePage != 0 || length == kLargePage) return offset % kLargePage == 0;
  const auto facts = stat_fd(fd, "the page cache");
  return facts.ok() && offset + length >= static_cast<std::uint64_t>(facts->st_size);
}

// Reads one large page by a fault in a mapping that asks for huge pages. With random access the fault reads nothing
// more, and it leaves no mark that the page was used (page_use.h); MADV_POPULATE_READ would leave one.
bool bring_in_large(int fd, std::uint64_t offset) {
  const std::size_t size = page_bytes();
  void* const map = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, static_cast<off_t>(offset));
  if (map == MAP_FAILED) return false;
  const bool done = ::madvise(map, size, MADV_HUGEPAGE) == 0 && ::madvise(map, size, MADV_RANDOM) == 0 &&
                    survive_faults([map] { static_cast<void>(*static_cast<const volatile char*>(map)); });
  ::munmap(map, size);
  return done;
}

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

bool all_cached(int fd, std::uint64_t offset, std::uint64_t length) {
  const auto present = cached_pages(fd, offset, length);
  return present.ok() && *present >= pages_of(offset, length);
}

// The kernel cuts a request short at the device's readahead or at its largest transfer, whichever is more. So the loop
// requests the missing bytes again, in smaller pieces.
void start_reading(int fd, std::uint64_t offset, std::uint64_t length) {
  std::uint64_t piece = kPiece;
  const std::uint64_t end = offset + length;
  while (offset < end) {
    const std::uint64_t part = std::min(piece, end - offset);
    if (::posix_fadvise(fd, static_cast<off_t>(offset), static_cast<off_t>(part), POSIX_FADV_WILLNEED) != 0) return;
    const auto present = cached_pages(fd, offset, part);
    if (present.ok() && *present < pages_of(offset, part) && piece > kPieceMin)
      piece = std::max(kPieceMin, piece / 2);
    else
      offset += part;
  }
}

// Cached small pages prevent a large one: the kernel reads only the missing pages beside them. A cached first page
// shows a reader whose readahead is active; both together would make small pages of the rest.
void bring_in(int fd, std::uint64_t offset, std::uint64_t length) {
  static const bool large_pages = has_large_pages();
  const auto present = cached_pages(fd, offset, length);
  if (present.ok() && *present >= pages_of(offset, length)) return;
  const bool none = present.ok() && *present == 0;
  if (present.ok() && !none && all_cached(fd, offset, 1)) return;
  if (large_pages && none && is_large_page(fd, offset, length) && bring_in_large(fd, offset)) return;
  start_reading(fd, offset, length);
}

void forget_pages(int fd, std::uint64_t offset, std::uint64_t length) {
  ::posix_fadvise(fd, static_cast<off_t>(offset), static_cast<off_t>(length), POSIX_FADV_DONTNEED);
}

void unload_mapped(const void* begin, std::uint64_t length) {
  if (begin == nullptr || length == 0) return;
  const std::uint64_t skew = reinterpret_cast<std::uintptr_t>(begin) % page_bytes();
  auto* first = static_cast<std::byte*>(const_cast<void*>(begin)) - skew;
  static_cast<void>(::madvise(first, length + skew, MADV_DONTNEED));
}

void read_exactly_from_now_on(int fd) {
  ::posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
}

}  // namespace weft
