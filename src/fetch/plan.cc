#include "fetch/plan.h"

#include <algorithm>
#include <string>
#include <unordered_set>

#include "base/sha256.h"
#include "weft/bytes/run_list.h"

namespace weft {
namespace {

std::pair<std::size_t, std::size_t> batch(const FetchPlan& plan, std::size_t number) {
  if (number >= plan.batches.size()) return {plan.units.size(), plan.units.size()};
  const bool last = number + 1 == plan.batches.size();
  return {plan.batches[number], last ? plan.units.size() : plan.batches[number + 1]};
}

std::size_t batch_number(const FetchPlan& plan, std::size_t unit) {
  const auto behind = std::ranges::upper_bound(plan.batches, unit);
  return static_cast<std::size_t>(behind - plan.batches.begin()) - 1;
}

void cut_batches(FetchPlan& plan) {
  std::uint64_t bytes = 0;
  for (std::size_t unit = 0; unit < plan.units.size(); ++unit) {
    bytes += plan.units[unit].length;
    const bool fits = !plan.batches.empty() && unit - plan.batches.back() < kBatchUnitsMax && bytes <= kBatchBytesMax;
    if (fits) continue;
    plan.batches.push_back(unit);
    bytes = plan.units[unit].length;
  }
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::string without_digits(std::string path) {
  std::erase_if(path, is_digit);
  return path;
}

}  // namespace

FetchPlan plan_fetch(std::span<const Extent> absent) {
  FetchPlan plan;
  std::unordered_set<ContentId> seen;
  for (const Extent& extent : absent) {
    if (!seen.insert(extent.id).second) continue;
    const std::size_t blob = plan.blobs.size();
    plan.blobs.push_back(extent);
    for (std::uint64_t chunk = 0; chunk < chunk_count(extent.id.length); ++chunk) {
      const ChunkRun run{extent.id, chunk, 1};
      plan.units.push_back({extent.offset + run.offset(), run.length(), blob, run});
    }
  }
  return plan;
}

FetchPlan plan_group(std::span<const Extent> absent) {
  std::vector<Extent> placed;
  std::unordered_set<ContentId> seen;
  std::uint64_t end = 0;
  for (const Extent& extent : absent) {
    if (!seen.insert(extent.id).second) continue;
    placed.push_back(extent);
    placed.back().offset = end;
    end += extent.id.length;
  }
  FetchPlan plan = plan_fetch(placed);
  cut_batches(plan);
  return plan;
}

bool is_grouped(const File& file) {
  return file.size < kGroupedFileMax;
}

std::vector<FileGroup> group_files(const Manifest& manifest) {
  std::vector<FileGroup> groups;
  std::uint64_t blobs = 0;
  std::uint64_t bytes = 0;
  for (std::uint32_t number = 0; number < manifest.files.size(); ++number) {
    const File& file = manifest.files[number];
    if (!is_grouped(file)) continue;
    blobs += file.extents.size();
    bytes += file.size;
    if (groups.empty() || blobs > kGroupBlobsMax || bytes > kGroupBytesMax) {
      groups.push_back({number, number});
      blobs = file.extents.size();
      bytes = file.size;
    }
    groups.back().end = number + 1;
  }
  return groups;
}

FileGroup group_of(std::span<const FileGroup> groups, std::uint32_t file) {
  const auto behind = std::ranges::upper_bound(groups, file, {}, &FileGroup::first);
  return behind == groups.begin() ? FileGroup{file, file + 1} : *std::prev(behind);
}

std::vector<std::uint32_t> shards_of(const Manifest& manifest, std::uint32_t file) {
  std::vector<std::uint32_t> out;
  const auto is_of_weights = [](const File& one) { return !is_grouped(one) && !one.tensors.empty(); };
  const File& own = manifest.files[file];
  if (!is_of_weights(own)) return out;
  const std::string name = without_digits(own.path);
  for (std::uint32_t number = 0; number < manifest.files.size(); ++number) {
    const File& other = manifest.files[number];
    if (number != file && is_of_weights(other) && other.format == own.format && without_digits(other.path) == name)
      out.push_back(number);
  }
  return out;
}

std::pair<std::size_t, std::size_t> batch_of(const FetchPlan& plan, std::size_t unit) {
  return batch(plan, batch_number(plan, unit));
}

std::pair<std::size_t, std::size_t> next_batch(const FetchPlan& plan, std::size_t unit) {
  return batch(plan, batch_number(plan, unit) + 1);
}

std::pair<std::size_t, std::size_t> units_in(const FetchPlan& plan, Range range) {
  return runs_in(plan.units, range);
}

}  // namespace weft
