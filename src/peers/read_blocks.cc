#include "peers/read_blocks.h"

#include <utility>

#include "base/limits.h"
#include "blobs/read_memory.h"

namespace weft {

ReadBlocks::Block ReadBlocks::take(std::size_t size) {
  if (size < kReadBlockBytesMin || size > kReadBlockBytes) return make(size);
  Block block;
  {
    const MutexLock lock(mutex_);
    if (!kept_.empty()) {
      block = std::move(kept_.back());
      kept_.pop_back();
    }
  }
  if (!block.memory) block = make(kReadBlockBytes);
  if (!block.landing || exchange_.pinned_bytes() == 0) return block;
  std::byte* const memory = block.memory.get();
  const auto landing = block.landing;
  const auto back = [pool = weak_from_this(), block](std::byte*) mutable {
    if (const auto living = pool.lock()) living->give_back(std::move(block));
  };
  return {std::shared_ptr<std::byte[]>(memory, back), landing};
}

ReadBlocks::Block ReadBlocks::make(std::size_t size) const {
  Block block{take_read_memory(size), nullptr};
  auto landing = exchange_.register_landing({block.memory.get(), size}, block.memory);
  if (landing.ok()) block.landing = *std::move(landing);
  return block;
}

// Keeps a block for the next read, unless enough memory is pinned. Drops a block that an abandoned read may still write
// to; that read owns the memory too.
void ReadBlocks::give_back(Block block) {
  const MutexLock lock(mutex_);
  if (closed_ || !block.landing->idle()) return;
  if (exchange_.pinned_bytes() <= limits::kPinnedAtRestMax) kept_.push_back(std::move(block));
}

void ReadBlocks::close() {
  const MutexLock lock(mutex_);
  closed_ = true;
  kept_.clear();
}

}  // namespace weft
