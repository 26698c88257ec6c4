#include "os/page_use.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "os/fault_guard.h"
#include "os/page_cache.h"
#include "os/sys.h"

namespace weft {
namespace {

// Of an entry of /proc/self/pagemap.
constexpr std::uint64_t kFrameMask = (std::uint64_t{1} << 55U) - 1;
// Of an entry of /proc/kpageflags.
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

bool counts_generations() {
  std::string enabled;
  return std::ifstream("/sys/kernel/mm/lru_gen/enabled") >> enabled &&
         enabled.find_first_not_of("0x") != std::string::npos;
}

// A read by the processor, and with random access, is no use once the mapping is gone; madvise(MADV_POPULATE_READ) is.
bool touch(const void* page) {
  return survive_faults([page] { static_cast<void>(*static_cast<const volatile char*>(page)); });
}

// The frame of a page of a mapping; 0 when it is not in the page cache.
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
  static const bool seen = !counts_generations() && shows_frames();
  return seen;
}

std::optional<PageUse> page_use(int fd, std::uint64_t offset) {
  const std::size_t size = page_bytes();
  void* const page = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, static_cast<off_t>(offset / size * size));
  if (page == MAP_FAILED) return {};
  const std::uint64_t frame = frame_of(page);
  ::munmap(page, size);
  const auto flags = frame == 0 ? std::nullopt : entry(proc_files().flags, frame);
  if (!flags) return {};
  return PageUse{frame, *flags};
}

// The first use of a page may leave it referenced, which it is also when it was brought in by us.
bool used(const PageUse& page) {
  if ((page.flags & (kActive | kMapped)) != 0) return true;
  const auto now = entry(proc_files().flags, page.frame);
  return now && (*now & ~page.flags & kUsed) != 0;
}

}  // namespace weft
