#include "peers/chunk_map.h"

#include <algorithm>

#include "base/limits.h"
#include "base/sha256.h"

namespace weft {
namespace {

constexpr std::uint64_t kBitsMax = limits::kAnnouncedBytesMax * 8;

bool bit_of(std::span<const std::uint8_t> bits, std::uint64_t number) {
  return number / 8 < bits.size() && (bits[number / 8] >> (number % 8) & 1U) != 0;
}

}  // namespace

ChunkMap::ChunkMap(const Manifest& manifest) {
  for (const File& file : manifest.files)
    for (const Extent& extent : file.extents)
      if (first_.emplace(extent.id, chunks_).second) chunks_ += chunk_count(extent.id.length);
  while (chunks_ / chunks_per_bit_ >= kBitsMax) chunks_per_bit_ *= 2;
}

std::optional<std::uint64_t> ChunkMap::number_of(const ContentId& id) const {
  const auto found = first_.find(id);
  return found == first_.end() ? std::nullopt : std::optional(found->second);
}

bool ChunkMap::has(const HadChunks& had, const ChunkRun& run) const {
  if (had.chunks_per_bit == 0) return true;
  const auto number = number_of(run.id);
  if (!number || had.chunks_per_bit != chunks_per_bit_) return false;
  const std::uint64_t end = (*number + run.first + run.count - 1) / chunks_per_bit_;
  for (std::uint64_t bit = (*number + run.first) / chunks_per_bit_; bit <= end; ++bit)
    if (!bit_of(had.bits, bit)) return false;
  return true;
}

void ChunkSet::add(std::uint64_t first, std::uint64_t count) {
  for (std::uint64_t i = first; i < first + count; ++i) {
    if (bits_[i]) continue;
    bits_[i] = true;
    ++count_;
  }
}

void ChunkSet::add(const ChunkSet& other) {
  for (std::uint64_t i = 0; i < bits_.size(); ++i)
    if (other.bits_[i]) add(i, 1);
}

HadChunks ChunkSet::told(const Digest& manifest, const ChunkMap& map) const {
  HadChunks had{manifest, "", 0, {}};
  if (all()) return had;
  had.chunks_per_bit = map.chunks_per_bit();
  had.bits.resize(((bits_.size() - 1) / had.chunks_per_bit) / 8 + 1);
  for (std::uint64_t at = 0, bit = 0; at < bits_.size(); at += had.chunks_per_bit, ++bit) {
    const auto begin = bits_.begin() + static_cast<std::ptrdiff_t>(at);
    const auto end =
        bits_.begin() + static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(at + had.chunks_per_bit, bits_.size()));
    if (std::all_of(begin, end, [](bool one) { return one; }))
      had.bits[bit / 8] |= static_cast<std::uint8_t>(1U << (bit % 8));
  }
  return had;
}

}  // namespace weft
