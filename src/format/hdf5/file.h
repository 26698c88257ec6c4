// The blocks of an HDF5 file: superblock, object headers, nodes of trees, heaps. Each is read once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "format/hdf5/fields.h"
#include "weft/content.h"
#include "weft/model/format.h"
#include "weft/result.h"

namespace weft {

using Hdf5Block = std::vector<std::byte>;

// The file behind all readers of one HDF5 file, and what they may spend on it together. Errors of this folder say what
// is broken and where, "object header at 4128 is past the end". They are Errc::unsupported, because HDF5 reads files
// that weft does not; other errors come from the source. One thread.
class Hdf5File {
 public:
  // `verify`: compares the checksums of the blocks that have one. A fuzzer turns it off.
  // `source` outlives the file.
  Hdf5File(ByteSource& source, bool verify);

  // Reads the superblock. Call it first.
  Status open();
  std::uint64_t root() const { return root_; }  // address of the root group's object header

  Hdf5Fields fields(std::span<const std::byte> block) const { return {block, widths_}; }
  Hdf5Widths widths() const { return widths_; }

  // Reads a block that begins at `at`. A second block there is an error, as are more blocks, or bytes in them, than a
  // sound file of this size has.
  Result<Hdf5Block> block(std::string_view what, std::uint64_t at, std::uint64_t length);
  // Reads further bytes of a block.
  Result<Hdf5Block> more(std::string_view what, std::uint64_t at, std::uint64_t length);
  // Checks that the bytes begin with `signature`.
  static Status check_signature(std::string_view what, std::uint64_t at, std::span<const std::byte> bytes,
                                std::string_view signature);
  // Checks the last four bytes, which are the checksum of those before.
  Status check_sum(std::string_view what, std::uint64_t at, std::span<const std::byte> bytes) const;
  Status compare_sum(std::string_view what, std::uint64_t at, std::uint32_t expected, std::uint32_t got) const;

  // Returns the place of a dataset's bytes in the file.
  Result<Range> data(std::uint64_t at, std::uint64_t length) const;
  // Count what the readers keep in memory.
  Status keep_link(std::size_t name_bytes);
  Status keep_chunks(std::uint64_t count);

 private:
  Status read_superblock(std::uint64_t at);

  ByteSource& source_;
  const bool verify_;
  Hdf5Widths widths_;
  std::uint64_t base_ = 0;  // file offset of address 0
  std::uint64_t root_ = kHdf5Undefined;
  std::unordered_set<std::uint64_t> blocks_;
  std::uint64_t bytes_left_, links_left_, names_left_, chunks_left_;
};

Error hdf5_error(std::string message);
// Returns the error of a block whose fields go on past its end.
Error hdf5_short(std::string_view what, std::uint64_t at);

}  // namespace weft
