// Where answers are put together that cannot be given from where their bytes lie. Each thread that serves has one; at
// rest their memory goes back to the system. Any thread.
#pragma once

#include <cstddef>
#include <mutex>
#include <span>

namespace weft {

// The calling thread's buffer, its own until this is destroyed; one at a time.
class ReadBuffer {
 public:
  ReadBuffer();
  // kReadBytesMax; nothing where the system has no memory.
  std::span<std::byte> bytes() const { return bytes_; }

 private:
  std::unique_lock<std::mutex> in_use_;
  std::span<std::byte> bytes_;
};

// Gives back the memory of all that are not in use.
void trim_read_buffers();

}  // namespace weft
