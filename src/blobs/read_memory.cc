#include "blobs/read_memory.h"

#include <sys/mman.h>

#include <cstdlib>
#include <mutex>
#include <new>
#include <vector>

#include "os/direct_read.h"
#include "os/page_cache.h"

namespace weft {
namespace {

constexpr std::size_t kAsked = 4U << 20U;  // a good request size, bytes
// A request that is not block-aligned needs one more block at each end.
static_assert(kReadBlockBytes == kAsked + 2 * kDirectBlock);
constexpr std::size_t kBlock = kReadBlockBytes;
constexpr std::size_t kLarge = kReadBlockBytesMin;
constexpr std::size_t kKeptMax = 8;  // blocks

struct Freed {
  void operator()(std::byte* memory) const { std::free(memory); }
};
using Block = std::unique_ptr<std::byte, Freed>;

Block aligned(std::size_t to, std::size_t size) {
  Block made(static_cast<std::byte*>(std::aligned_alloc(to, (size + to - 1) / to * to)));
  if (!made) throw std::bad_alloc();
  return made;
}

Block make_block() {
  Block made = aligned(kLargePage, kBlock);
  ::madvise(made.get(), kAsked, MADV_HUGEPAGE);
  return made;
}

class Kept {
 public:
  Block take() {
    {
      const std::lock_guard lock(mutex_);
      if (!blocks_.empty()) {
        Block last = std::move(blocks_.back());  // last freed: most likely still in the CPU's caches
        blocks_.pop_back();
        return last;
      }
    }
    return make_block();
  }

  void give_back(Block block) {
    const std::lock_guard lock(mutex_);
    if (blocks_.size() < kKeptMax) blocks_.push_back(std::move(block));
  }

  void drop() {
    std::vector<Block> blocks;
    const std::lock_guard lock(mutex_);
    blocks.swap(blocks_);
  }

 private:
  std::mutex mutex_;
  std::vector<Block> blocks_;  // guarded by mutex_
};

Kept& kept() {
  static auto* const all = new Kept;  // never destroyed: an abandoned read may end late
  return *all;
}

}  // namespace

std::shared_ptr<std::byte[]> take_read_memory(std::size_t size) {
  if (size < kLarge) return std::make_unique_for_overwrite<std::byte[]>(size);
  if (size > kBlock) return {aligned(kDirectBlock, size).release(), Freed()};
  return {kept().take().release(), [](std::byte* memory) { kept().give_back(Block(memory)); }};
}

void drop_read_memory() {
  kept().drop();
}

}  // namespace weft
