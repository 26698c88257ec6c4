#include "fuse/ops/read_buffer.h"

#include <sys/mman.h>

#include <vector>

#include "fuse/state/server.h"

namespace weft {
namespace {

class Buffer;

struct Registry {
  std::mutex mutex;
  std::vector<Buffer*> buffers;  // guarded by mutex
};

// Never destroyed: threads may outlive static objects.
Registry& registry() {
  static Registry* const all = new Registry;
  return *all;
}

// A buffer of one thread. Its pages are allocated on first use.
class Buffer {
 public:
  Buffer() : memory_(::mmap(nullptr, kReadBytesMax, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    const std::lock_guard lock(registry().mutex);
    registry().buffers.push_back(this);
  }
  ~Buffer() {
    {
      const std::lock_guard lock(registry().mutex);
      std::erase(registry().buffers, this);
    }
    if (memory_ != MAP_FAILED) ::munmap(memory_, kReadBytesMax);
  }

  std::span<std::byte> bytes() const {
    if (memory_ == MAP_FAILED) return {};
    return {static_cast<std::byte*>(memory_), kReadBytesMax};
  }
  void trim() {
    const std::unique_lock lock(mutex, std::try_to_lock);
    if (lock.owns_lock() && memory_ != MAP_FAILED) ::madvise(memory_, kReadBytesMax, MADV_DONTNEED);
  }

  std::mutex mutex;  // locked after Registry::mutex; held while the buffer is in use

 private:
  void* const memory_;
};

Buffer& own_buffer() {
  thread_local Buffer buffer;
  return buffer;
}

}  // namespace

ReadBuffer::ReadBuffer() : in_use_(own_buffer().mutex), bytes_(own_buffer().bytes()) {}

void trim_read_buffers() {
  const std::lock_guard lock(registry().mutex);
  for (Buffer* const buffer : registry().buffers) buffer->trim();
}

}  // namespace weft
