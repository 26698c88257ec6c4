#include "weft/bytes/window_memory.h"

#include <fmt/core.h>
#include <sys/mman.h>

#include <atomic>
#include <cstring>
#include <deque>
#include <mutex>
#include <utility>

#include "base/limits.h"
#include "os/page_cache.h"
#include "os/sys.h"

namespace weft {
namespace {

// Withdrawn addresses, the oldest first, kept so that nothing else is mapped there. Any thread.
class Withdrawn {
 public:
  void keep(std::span<std::byte> mapped) {
    const std::lock_guard lock(mutex_);
    kept_.push_back(mapped);
    if (kept_.size() <= limits::kWithdrawnMax) return;
    ::munmap(kept_.front().data(), kept_.front().size());
    kept_.pop_front();
  }

 private:
  std::mutex mutex_;
  std::deque<std::span<std::byte>> kept_;  // guarded by mutex_
};

// Counts the bytes of one copy against kWindowCopiesMax, for its lifetime.
class CopyRoom {
 public:
  static Result<std::shared_ptr<const CopyRoom>> take(std::size_t bytes) {
    std::shared_ptr<const CopyRoom> room(new CopyRoom(bytes));
    if (taken <= limits::kWindowCopiesMax) return room;
    return Error{Errc::busy, fmt::format("a window: copies of more than {} bytes", limits::kWindowCopiesMax)};
  }
  ~CopyRoom() { taken -= bytes_; }
  CopyRoom(const CopyRoom&) = delete;
  CopyRoom& operator=(const CopyRoom&) = delete;

 private:
  explicit CopyRoom(std::size_t bytes) : bytes_(bytes) { taken += bytes; }
  inline static std::atomic<std::uint64_t> taken{0};
  const std::size_t bytes_;
};

Withdrawn& withdrawn() {
  static auto* const kept = new Withdrawn;  // never freed: late reads may come until the process ends
  return *kept;
}

}  // namespace

Result<std::span<std::byte>> WindowMemory::map(int fd, std::uint64_t offset, std::size_t length) {
  const int flags = fd >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
  const int protection = fd >= 0 ? PROT_READ : PROT_READ | PROT_WRITE;
  void* const at = ::mmap(nullptr, length, protection, flags, fd, static_cast<off_t>(offset));
  if (at == MAP_FAILED) return sys_error(errno, fmt::format("a window: mmap of {} bytes", length));
  return std::span(static_cast<std::byte*>(at), length);
}

Status WindowMemory::read_in() const {
  if (::madvise(mapped_.data(), mapped_.size(), MADV_POPULATE_READ) == 0) return {};
  Error failed = sys_error(errno, fmt::format("a window: reading {} bytes in", mapped_.size()));
  if (failed.code == Errc::invalid) return {};  // Linux before 5.14: a disk error shows when the bytes are sent
  return failed;
}

Result<std::unique_ptr<WindowMemory>> WindowMemory::of_file(int fd, std::uint64_t offset, std::size_t length,
                                                            std::shared_ptr<const void> owner) {
  if (fd < 0 || length == 0) return Error{Errc::invalid, "a window: no file, or no bytes of it"};
  const std::size_t before = offset % page_bytes();
  WEFT_TRY(const std::span<std::byte> mapped, map(fd, offset - before, before + length));
  auto made = std::unique_ptr<WindowMemory>(new WindowMemory(mapped, mapped.subspan(before), std::move(owner), true));
  WEFT_CHECK(made->read_in());
  return made;
}

Result<std::unique_ptr<WindowMemory>> WindowMemory::of_bytes(std::span<const std::byte> bytes) {
  if (bytes.empty()) return Error{Errc::invalid, "a window: no bytes"};
  WEFT_TRY(auto room, CopyRoom::take(bytes.size()));
  WEFT_TRY(const std::span<std::byte> mapped, map(-1, 0, bytes.size()));
  std::memcpy(mapped.data(), bytes.data(), bytes.size());
  return std::unique_ptr<WindowMemory>(new WindowMemory(mapped, mapped, std::move(room), false));
}

WindowMemory::~WindowMemory() {
  if (!mapped_.empty()) ::munmap(mapped_.data(), mapped_.size());
}

// Maps the kernel's page of zeros over the memory: a late read then uses neither memory nor the file.
void WindowMemory::withdraw() {
  const std::span<std::byte> mapped = std::exchange(mapped_, {});
  void* const nothing =
      ::mmap(mapped.data(), mapped.size(), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  bytes_ = {};
  owner_.reset();
  if (nothing != MAP_FAILED) withdrawn().keep(mapped);
}

}  // namespace weft
