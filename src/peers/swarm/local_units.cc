#include "peers/swarm/local_units.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace weft {
namespace {

constexpr std::size_t kAskedAtOnce = 256;  // runs; LocalBytes::here() keeps its packs open for all of them

// Calls `local` with each run that is local, and `other` with each other run.
template <typename Local, typename Other>
void sort_runs(std::span<const ChunkRun> runs, LocalBytes& bytes, const Local& local, const Other& other) {
  for (std::size_t at = 0; at < runs.size(); at += kAskedAtOnce) {
    const auto part = runs.subspan(at, std::min(kAskedAtOnce, runs.size() - at));
    const auto places = here_if_any(bytes, part);
    for (std::size_t i = 0; i < part.size(); ++i) places[i].pack ? local(part[i]) : other(part[i]);
  }
}

std::vector<ChunkRun> single_chunks(const ChunkRun& blob) {
  std::vector<ChunkRun> chunks;
  for (std::uint64_t i = 0; i < blob.count; ++i) chunks.push_back({blob.id, blob.first + i, 1});
  return chunks;
}

}  // namespace

LocalUnits::LocalUnits(std::shared_ptr<const VersionUnits> version)
    : version_(std::move(version)), chunks_(version_->units().chunks()), complete_(version_->count()) {}

std::vector<std::uint32_t> LocalUnits::add(std::span<const ChunkRun> runs) {
  std::vector<std::uint32_t> fresh;
  for (const ChunkRun& run : runs) {
    const auto numbers = version_->numbers_of(run);
    if (!numbers) continue;
    const auto begin = chunks_.begin() + static_cast<std::ptrdiff_t>(numbers->first);
    std::fill(begin, begin + static_cast<std::ptrdiff_t>(numbers->count), true);
    const std::uint32_t last = version_->units().unit_of(numbers->first + numbers->count - 1);
    for (std::uint32_t unit = version_->units().unit_of(numbers->first); unit <= last; ++unit)
      if (completes(unit)) fresh.push_back(unit);
  }
  std::ranges::sort(fresh);
  return fresh;
}

bool LocalUnits::completes(std::uint32_t unit) {
  if (complete_.has(unit)) return false;
  const auto begin = chunks_.begin() + static_cast<std::ptrdiff_t>(version_->units().first_chunk(unit));
  const auto end = begin + static_cast<std::ptrdiff_t>(version_->units().chunks_in(unit));
  return std::find(begin, end, false) == end && complete_.add(unit);
}

void LocalUnits::remove(std::uint32_t unit) {
  if (!complete_.remove(unit)) return;
  const auto begin = chunks_.begin() + static_cast<std::ptrdiff_t>(version_->units().first_chunk(unit));
  std::fill(begin, begin + static_cast<std::ptrdiff_t>(version_->units().chunks_in(unit)), false);
}

std::vector<ChunkRun> local_runs(const VersionUnits& version, LocalBytes& bytes) {
  std::vector<ChunkRun> local, others;
  const auto add = [&](const ChunkRun& run) { local.push_back(run); };
  sort_runs(version.blobs(), bytes, add, [&](const ChunkRun& blob) { others.push_back(blob); });
  for (const ChunkRun& blob : others)
    if (blob.count > 1) sort_runs(single_chunks(blob), bytes, add, [](const ChunkRun&) {});
  return local;
}

}  // namespace weft
