#include "peers/swarm/version_units.h"

#include <algorithm>

#include <fmt/core.h>

#include "base/sha256.h"
#include "weft/cluster/exchange.h"
#include "weft/model/manifest.h"

namespace weft {

static_assert(LocalVersionUnits::kChunksPerUnitMax * kDigestChunk <= kAnswerBytesMax);

VersionUnits::VersionUnits(const Manifest& manifest) {
  std::uint64_t chunks = 0;
  for (const File& file : manifest.files)
    for (const Extent& extent : file.extents) {
      const ChunkRun blob{extent.id, 0, chunk_count(extent.id.length)};
      if (blob.count == 0 || !first_of_.emplace(blob.id, chunks).second) continue;
      blobs_.push_back(blob);
      firsts_.push_back(chunks);
      chunks += blob.count;
    }
  units_ = Units(chunks);
}

std::vector<ChunkRun> VersionUnits::runs(std::uint32_t unit) const {
  std::vector<ChunkRun> runs;
  std::uint64_t number = units_.first_chunk(unit);
  std::uint64_t left = units_.chunks_in(unit);
  const auto after = std::ranges::upper_bound(firsts_, number);
  for (auto blob = static_cast<std::size_t>(after - firsts_.begin()) - 1; left != 0; ++blob) {
    const std::uint64_t first = number - firsts_[blob];
    const std::uint64_t count = std::min(left, blobs_[blob].count - first);
    runs.push_back({blobs_[blob].id, first, count});
    number += count;
    left -= count;
  }
  return runs;
}

std::uint64_t VersionUnits::bytes(std::uint32_t unit) const {
  std::uint64_t bytes = 0;
  for (const ChunkRun& run : runs(unit)) bytes += run.length();
  return bytes;
}

std::optional<VersionUnits::Numbers> VersionUnits::numbers_of(const ChunkRun& run) const {
  const auto first = first_of_.find(run.id);
  const std::uint64_t chunks = chunk_count(run.id.length);
  if (first == first_of_.end() || run.count == 0 || run.first >= chunks || run.count > chunks - run.first)
    return std::nullopt;
  return Numbers{first->second + run.first, run.count};
}

std::optional<std::pair<std::uint32_t, std::uint32_t>> VersionUnits::units_of(const ChunkRun& run) const {
  const auto numbers = numbers_of(run);
  if (!numbers) return std::nullopt;
  return std::pair(units_.unit_of(numbers->first), units_.unit_of(numbers->first + numbers->count - 1));
}

std::shared_ptr<const VersionUnits> LocalVersionUnits::known(const Digest& digest) {
  const MutexLock lock(mutex_);
  std::erase_if(found_, [](const auto& one) { return one.second.expired(); });
  for (const auto& [known, units] : found_)
    if (auto found = units.lock(); found && known == digest) return found;
  return nullptr;
}

Result<std::shared_ptr<const VersionUnits>> LocalVersionUnits::keep(const Digest& digest,
                                                                    std::span<const std::byte> bytes) {
  WEFT_TRY(const Manifest manifest, decode_manifest(bytes));
  auto units = std::make_shared<const VersionUnits>(manifest);
  if (units->units().chunks_per_unit() > kChunksPerUnitMax)
    return Error{Errc::unsupported,
                 fmt::format("a version of {} chunks is too large for a swarm", units->units().chunks())};
  const MutexLock lock(mutex_);
  found_.emplace_back(digest, units);
  return units;
}

Result<std::shared_ptr<const VersionUnits>> LocalVersionUnits::find(const Digest& digest) {
  if (auto found = known(digest)) return found;
  WEFT_TRY(const auto bytes, store_.open_manifest(digest));
  return keep(digest, bytes->bytes());
}

Result<std::shared_ptr<const VersionUnits>> LocalVersionUnits::find_at(BlobSource& source, const Digest& digest,
                                                                       Deadline deadline) {
  if (auto found = find(digest); found.ok() || found.error().code == Errc::unsupported) return found;
  WEFT_TRY(const auto bytes, source.manifest(digest, deadline));
  if (sha256(bytes) != digest) return Error{Errc::corrupt, "a manifest with another digest"};
  return keep(digest, bytes);
}

}  // namespace weft
