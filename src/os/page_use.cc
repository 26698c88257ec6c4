#include "os/page_use.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <optional>

#include "os/fault_guard.h"
#include "os/page_cache.h"
#include "os/sys.h"

namespace weft {
namespace {

// The frame number in an entry of /proc/self/pagemap.
constexpr std::uint64_t kFrameMask = (std::uint64_t{1} << 55U) - 1;
// Flags in an entry of /proc/kpageflags.
constexpr std::uint64_t kReferenced = 1U << 2U;
constexpr std::uint64_t kActive = 1U << 6U;
constexpr std::uint64_t kMapped = 1U << 11U;
constexpr std::uint64_t kUsed = kReferenced | kActive | kMapped;

struct ProcFiles {
  Fd frames{::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC)};
  Fd flags{::open("/proc/kpageflags", O_RDONLY | O_CLOEXEC)};
};

const ProcFiles& proc_files() {
  static const ProcFiles files;
  return files;
}

std::optional<std::uint64_t> entry(const Fd& file, std::uint64_t index) {
  std::uint64_t value = 0;
  const auto at = static_cast<off_t>(index * sizeof value);
  if (!file.valid() || ::pread(file.get(), &value, sizeof value, at) != sizeof value) return {};
  return value;
}

// Reads one byte of the page. Through a mapping with random access, the read leaves no mark once the mapping is gone;
// madvise(MADV_POPULATE_READ) would leave one.
bool touch(const void* page) {
  return survive_faults([page] { static_cast<void>(*static_cast<const volatile char*>(page)); });
}

// Returns the frame of a page of a mapping, or 0 if it is not in the page cache.
std::uint64_t frame_of(void* page) {
  const std::size_t size = page_bytes();
  unsigned char resident = 0;
  if (::mincore(page, size, &resident) != 0 || (resident & 1U) == 0) return 0;
  if (::madvise(page, size, MADV_RANDOM) != 0 || !touch(page)) return 0;
  return entry(proc_files().frames, reinterpret_cast<std::uintptr_t>(page) / size).value_or(0) & kFrameMask;
}

bool shows_frames() {
  const std::size_t size = page_bytes();
  void* const page = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (page == MAP_FAILED) return false;
  const auto frame = entry(proc_files().frames, reinterpret_cast<std::uintptr_t>(page) / size).value_or(0) & kFrameMask;
  ::munmap(page, size);
  return frame != 0 && entry(proc_files().flags, frame).has_value();
}

}  // namespace

bool page_use_seen() {
  static const bool seen = shows_frames();
  return seen;
}

// The kernel may reuse the frame for another file between the two lookups; the answer is then about that file's page.
bool page_used(int fd, std::uint64_t offset) {
  if (!page_use_seen()) return false;
  const std::size_t size = page_bytes();
  void* const page = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, static_cast<off_t>(offset / size * size));
  if (page == MAP_FAILED) return false;
  const std::uint64_t frame = frame_of(page);
  ::munmap(page, size);
  return frame != 0 && (entry(proc_files().flags, frame).value_or(0) & kUsed) != 0;
}

}  // namespace weft
