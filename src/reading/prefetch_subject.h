// A file to read ahead in. Plain data.
#pragma once

#include <cstdint>
#include <vector>

namespace weft {

// The bytes [offset, offset + length) of a file, which lie in `fd` from fd_offset on.
struct FilePiece {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  int fd = -1;
  std::uint64_t fd_offset = 0;
};

// Pieces are in order and contiguous, from pieces[0].offset to the file's end.
struct PrefetchSubject {
  std::vector<FilePiece> pieces;
  std::vector<std::uint64_t> borders;  // where tensors begin, ascending
  bool reads_seen = false;             // every read is reported; else the page cache is watched
};

}  // namespace weft
