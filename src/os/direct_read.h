// Reads large parts of a file past the page cache: the disk writes into the caller's memory, without cached pages and
// without a copy. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "os/sys.h"

namespace weft {

// Alignment of offsets, sizes and memory in direct reads; enough for every disk.
inline constexpr std::uint64_t kDirectBlock = 4096;

// The blocks that contain [offset, offset + length).
struct DirectBlocks {
  std::uint64_t begin = 0;
  std::uint64_t length = 0;
};
constexpr DirectBlocks direct_blocks(std::uint64_t offset, std::uint64_t length) {
  const std::uint64_t begin = offset / kDirectBlock * kDirectBlock;
  const std::uint64_t end = (offset + length + kDirectBlock - 1) / kDirectBlock * kDirectBlock;
  return {begin, end - begin};
}

// Opens the file of `fd` again for direct reads. Returns an invalid Fd if the file system cannot, or if it is a FUSE
// file system: there direct reads save nothing, and the kernel's readahead would be missing.
Fd open_direct(int fd);

// Reads whole blocks through a descriptor of open_direct(); fewer bytes only at the end of the file. Returns nothing on
// an error: the caller then makes an ordinary read, which succeeds or reports the error.
std::optional<std::size_t> read_direct(int fd, std::uint64_t offset, std::span<std::byte> blocks);

}  // namespace weft
