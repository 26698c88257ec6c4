#include "node/landing_area.h"

#include <sys/mman.h>

#include <cerrno>

#include <fmt/core.h>

#include "base/page_cache.h"

namespace weft {
namespace {

Result<std::byte*> map_at(void* place, int fd, std::uint64_t size, int flags) {
  void* mapped = ::mmap(place, size, PROT_READ | PROT_WRITE, flags, fd, 0);
  if (mapped == MAP_FAILED) return sys_error(errno, fmt::format("cannot map {} bytes that are being fetched", size));
  return static_cast<std::byte*>(mapped);
}

}  // namespace

Result<std::shared_ptr<LandingArea>> LandingArea::map(Fd file, std::uint64_t size) {
  WEFT_TRY(std::byte * mapped, map_at(nullptr, file.get(), size, MAP_SHARED));
  return std::shared_ptr<LandingArea>(new LandingArea(std::move(file), {mapped, size}));
}

LandingArea::~LandingArea() {
  ::munmap(memory_.data(), memory_.size());
}

void LandingArea::take_pages(std::uint64_t offset, std::uint64_t length) const {
  const std::uint64_t before = offset % page_bytes();
  static_cast<void>(::madvise(memory_.data() + (offset - before), before + length, MADV_POPULATE_WRITE));
}

// First said, then done: who sees it false afterwards has landed in the file.
Status LandingArea::leave() {
  if (left_.exchange(true)) return {};
  WEFT_CHECK(map_at(memory_.data(), file_.get(), memory_.size(), MAP_PRIVATE | MAP_FIXED));
  return {};
}

}  // namespace weft
