// Reading large parts of a file past the page cache: the disk writes into the reader's own memory, and no pages are
// made and copied. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "os/sys.h"

namespace weft {

// What offsets, sizes and memory are multiples of: as much as any disk wants.
inline constexpr std::uint64_t kDirectBlock = 4096;

// The whole blocks around [offset, offset + length).
struct DirectBlocks {
  std::uint64_t begin = 0;
  std::uint64_t length = 0;
};
constexpr DirectBlocks direct_blocks(std::uint64_t offset, std::uint64_t length) {
  const std::uint64_t begin = offset / kDirectBlock * kDirectBlock;
  const std::uint64_t end = (offset + length + kDirectBlock - 1) / kDirectBlock * kDirectBlock;
  return {begin, end - begin};
}

// The file of `fd` once more, to be read so. Not valid where its file system has no such way, nor in user space (FUSE):
// there it spares nothing, and what the kernel reads ahead would be missed.
Fd open_direct(int fd);

// Whole blocks, by a descriptor of open_direct(); fewer bytes at the end of the file. Nothing when that fails: a read
// in the ordinary way says why, or has them.
std::optional<std::size_t> read_direct(int fd, std::uint64_t offset, std::span<std::byte> blocks);

}  // namespace weft
