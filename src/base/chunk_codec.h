// Coded chunks: the difference between a chunk of a tensor and the chunk at the same offset of the same tensor in
// another version, the base. A coded chunk is an encoding of bytes that move between nodes. It is never stored content
// and no digest names it.
//
// The form, little-endian: codec (1 byte), width (1), number of streams (1), 0 (1), each stream's raw size (4 each),
// each stream's coded size (4 each), the streams. A stream is one zstd frame, or raw bytes if both sizes are equal.
// `width` is the size of an element in bytes: 1, 2, 4 or 8. A difference is (new - base) modulo 2^(8 * width), with
// its sign moved to the lowest bit, so that small differences have zeros in their high bytes.
//
//   codec 0, same: the chunk equals its base; no streams.
//   codec 1, sparse: few elements changed. The first stream holds the gaps between changed elements, one byte each;
//     255 means "255 more, and no element yet". One stream for each byte of the changed elements' differences follows.
//   codec 2, planes: most elements changed. One stream for each byte of every element's difference.
//
// Trust: coded bytes are hostile until decode() accepts them. Bytes that decode() accepts can still be wrong; only
// their SHA-256 tells. Sizes are compared with the chunk's length before memory is taken for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "weft/result.h"

namespace weft {

// How much work a coder spends on a chunk.
enum class CodingEffort : std::uint8_t {
  none,    // plain bytes are wanted
  sparse,  // only if few elements changed, by a sample: such chunks code and decode faster than a link moves them
  dense,   // also if most elements changed
};

// The widths that a coded chunk can have.
constexpr bool is_coding_width(std::size_t width) {
  return width == 1 || width == 2 || width == 4 || width == 8;
}

// Returns the share of elements that differ, from 0 to 1, by a sample of 1/16 of the chunk. `base` and `now` have the
// same length, a multiple of `width`.
double changed_share(std::span<const std::byte> base, std::span<const std::byte> now, std::size_t width);

// One thread at a time. Holds at most 6 MiB of memory, whatever the input is.
class ChunkCoder {
 public:
  ChunkCoder();
  ~ChunkCoder();

  // Returns the coded form of `now`. Returns nothing if plain bytes are better: the lengths differ, are no multiple of
  // `width` or more than kDigestChunk; `effort` does not allow the work; the coded form is not shorter than the plain
  // bytes.
  std::optional<std::vector<std::byte>> encode(std::span<const std::byte> base, std::span<const std::byte> now,
                                               std::size_t width, CodingEffort effort);

  struct Decoded {
    std::uint64_t elements = 0;  // elements of the chunk
    std::uint64_t changed = 0;   // elements that differ from the base
  };
  // Turns the base in `chunk` into the chunk that `coded` describes. Errc::corrupt: not a coded chunk of this length
  // and width; `chunk` then holds any bytes.
  Result<Decoded> decode(std::span<const std::byte> coded, std::size_t width, std::span<std::byte> chunk);

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace weft
