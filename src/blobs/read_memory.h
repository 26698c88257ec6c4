// Reusable memory for reads from sources. Fresh memory costs the kernel about as much time as receiving the bytes.
#pragma once

#include <cstddef>
#include <memory>

namespace weft {

// Requests of at least kReadBlockBytesMin get a block of kReadBlockBytes, which is reused.
inline constexpr std::size_t kReadBlockBytesMin = 256U << 10U;
inline constexpr std::size_t kReadBlockBytes = (4U << 20U) + 2 * 4096U;

// Returns at least `size` bytes, not cleared. Memory of kReadBlockBytesMin and more is page-aligned. Up to
// kReadBlockBytes it comes from a pool of blocks, and returns there when its last owner is gone. Any thread.
std::shared_ptr<std::byte[]> take_read_memory(std::size_t size);

// Frees the blocks in the pool. For times without reads.
void drop_read_memory();

}  // namespace weft
