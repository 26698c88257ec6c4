// Memory that sources read into, used again: fresh memory costs the kernel about as much as the bytes that come.
#pragma once

#include <cstddef>
#include <memory>

namespace weft {

// So much at least, not cleared. Large memory begins at a page, comes from what was given back lately, and is kept for
// the next when the last owner goes. Any thread.
std::shared_ptr<std::byte[]> take_read_memory(std::size_t size);

// What is kept for the next goes back to the machine: nothing is read now.
void drop_read_memory();

}  // namespace weft
