// Hostile coded chunks from peers. The input is the width as a power of two (1 byte), the chunk's length (2 bytes), and
// the coded chunk; the base is a pattern. The two halves of the input also serve as a base and a chunk to encode.
#include <algorithm>
#include <vector>

#include "base/chunk_codec.h"
#include "fuzzing.h"

namespace {

using weft::ChunkCoder;
using weft::CodingEffort;

void round_trip(ChunkCoder& coder, std::span<const std::byte> bytes, std::size_t width) {
  const std::size_t half = bytes.size() / 2 / width * width;
  const auto base = bytes.first(half);
  const auto now = bytes.subspan(half, half);
  const auto coded = coder.encode(base, now, width, CodingEffort::dense);
  if (!coded) return;
  std::vector<std::byte> out(base.begin(), base.end());
  weft::fuzzing::require(coder.decode(*coded, width, out).ok(), "a coded chunk decodes");
  weft::fuzzing::require(std::ranges::equal(out, now), "a coded chunk decodes to what it was");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 3) return 0;
  static ChunkCoder coder;
  const auto bytes = std::as_bytes(std::span(data, size));
  const std::size_t width = std::size_t{1} << (data[0] % 4U);
  std::vector<std::byte> chunk(data[1] + 256U * data[2]);
  for (std::size_t at = 0; at < chunk.size(); ++at) chunk[at] = static_cast<std::byte>(at * 31U);
  const auto decoded = coder.decode(bytes.subspan(3), width, chunk);
  if (decoded.ok()) weft::fuzzing::require(decoded->changed <= decoded->elements, "no more changes than elements");
  if (!decoded.ok()) weft::fuzzing::require(decoded.error().code == weft::Errc::corrupt, "a refusal is Errc::corrupt");
  round_trip(coder, bytes.subspan(3), width);
  return 0;
}
