// Fractal heaps of HDF5, which hold the links of new groups.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>

#include "format/hdf5/file.h"
#include "weft/result.h"

namespace weft {

class Hdf5Heap {
 public:
  // Reads the header of a heap. `file` outlives the heap.
  static Result<Hdf5Heap> open(Hdf5File& file, std::uint64_t header);

  // Returns an object, by its identifier. It is valid until the heap ends.
  Result<std::span<const std::byte>> object(std::span<const std::byte> id);

 private:
  struct Place {
    std::uint64_t block = 0;  // address of a direct block
    std::uint64_t begin = 0;  // the block's offset in the heap
    std::uint64_t length = 0;
  };

  Hdf5Heap(Hdf5File& file, std::uint64_t header) : file_(file), header_(header) {}
  Status read_header();
  Error broken(std::string_view what) const;
  std::uint64_t row_bytes(std::uint64_t row) const;  // of a block; 0: more than a heap has
  Result<Place> find_block(std::uint64_t offset);
  Result<std::uint64_t> child(std::uint64_t block, std::uint64_t rows, std::uint64_t entry);
  Result<std::span<const std::byte>> direct_block(const Place& place);

  Hdf5File& file_;
  std::uint64_t header_;
  std::uint64_t width_ = 0;       // blocks of a row
  std::uint64_t start_ = 0;       // bytes of the first block
  std::uint64_t direct_max_ = 0;  // bytes of the largest direct block
  std::size_t offset_bytes_ = 0, length_bytes_ = 0;
  bool checked_ = false;  // direct blocks have a checksum
  std::uint64_t root_ = 0, root_rows_ = 0;
  std::unordered_map<std::uint64_t, Hdf5Block> blocks_;  // by address
};

}  // namespace weft
