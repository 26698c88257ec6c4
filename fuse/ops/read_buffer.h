// Buffers for replies that cannot be sent from the place where their bytes are. Each serving thread has one. Their
// memory is freed when the mount is idle. Any thread.
#pragma once

#include <cstddef>
#include <mutex>
#include <span>

namespace weft {

// The calling thread's buffer, in use while this lives. One per thread at a time.
class ReadBuffer {
 public:
  ReadBuffer();
  // Has kReadBytesMax bytes; empty if the system has no memory.
  std::span<std::byte> bytes() const { return bytes_; }

 private:
  std::unique_lock<std::mutex> in_use_;
  std::span<std::byte> bytes_;
};

// Frees the memory of all buffers that are not in use.
void trim_read_buffers();

}  // namespace weft
