#include "os/file_map.h"

#include <sys/mman.h>

#include <atomic>

#include "base/limits.h"
#include "os/page_cache.h"

namespace weft {
namespace {

constexpr int kPopulateRead = 22;  // MADV_POPULATE_READ, from Linux 5.14 on

std::atomic<std::size_t> maps{0};

}  // namespace

FileMap::~FileMap() {
  if (bytes_ == nullptr) return;
  ::munmap(const_cast<std::byte*>(bytes_), size_);
  maps.fetch_sub(1, std::memory_order_relaxed);
}

const std::byte* FileMap::bytes() const {
  std::call_once(once_, [this] { bytes_ = map(); });
  return bytes_;
}

const std::byte* FileMap::map() const {
  if (size_ == 0 || maps.load(std::memory_order_relaxed) >= limits::kFileMapsMax) return nullptr;
  void* const at = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, fd_, 0);
  if (at == MAP_FAILED) return nullptr;
  maps.fetch_add(1, std::memory_order_relaxed);
  ::madvise(at, size_, MADV_RANDOM);  // a fault reads its own page and no others
  return static_cast<const std::byte*>(at);
}

bool make_present(const std::byte* bytes, std::uint64_t length) {
  const std::uint64_t skew = reinterpret_cast<std::uintptr_t>(bytes) % page_bytes();
  return ::madvise(const_cast<std::byte*>(bytes) - skew, length + skew, kPopulateRead) == 0;
}

}  // namespace weft
