// Memory that sources read into, used again: fresh memory costs the kernel about as much as the bytes that come.
#pragma once

#include <cstddef>
#include <memory>

namespace weft {

// Memory of so many bytes is of the second size, and taken again.
inline constexpr std::size_t kReadBlockBytesMin = 256U << 10U;
inline constexpr std::size_t kReadBlockBytes = (4U << 20U) + 2 * 4096U;

// So much at least, not cleared. Large memory begins at a page, comes from what was given back lately, and is kept for
// the next when the last owner goes. Any thread.
std::shared_ptr<std::byte[]> take_read_memory(std::size_t size);

// What is kept for the next goes back to the machine: nothing is read now.
void drop_read_memory();

}  // namespace weft
