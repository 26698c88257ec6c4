// The plan of a transfer: the blobs of a version that are fetched into one pack, their offsets in it, and their units.
// A unit has bytes of one requested blob only.
//
// A large file has a pack of its own that is laid out as the file is, so that the finished pack can be read by
// passthrough. Small files share packs: a pack holds the blobs of a group of files, one after the other. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "weft/bytes/source.h"
#include "weft/model/manifest.h"

namespace weft {

inline constexpr std::uint64_t kGroupedFileMax = 1U << 20U;  // bytes; a larger file has a pack of its own
inline constexpr std::size_t kGroupBlobsMax = 4096;
inline constexpr std::uint64_t kGroupBytesMax = 64U << 20U;
// A batch of a group is fetched with one request.
inline constexpr std::size_t kBatchUnitsMax = 80;
inline constexpr std::uint64_t kBatchBytesMax = 1U << 20U;

// A chunk of a blob.
struct FetchUnit {
  std::uint64_t offset = 0;  // of the pack
  std::uint64_t length = 0;
  std::size_t blob = 0;  // number in FetchPlan::blobs
  ChunkRun run;          // of the chunk alone
};

struct FetchPlan {
  std::vector<Extent> blobs;         // each once; offsets of the pack; by offset
  std::vector<FetchUnit> units;      // by offset; together they are the blobs
  std::vector<std::size_t> batches;  // first unit of each batch of a group; empty for a file
  std::uint64_t size() const { return blobs.empty() ? 0 : blobs.back().offset + blobs.back().id.length; }
};

// Returns the plan of a pack that is laid out as a file. `absent`: its extents to fetch, by offset.
FetchPlan plan_fetch(std::span<const Extent> absent);
// Returns the plan of a pack of small files' blobs, one after the other in the order of `absent`.
FetchPlan plan_group(std::span<const Extent> absent);

// Files that share a pack: those of [first, end) of the manifest that are smaller than kGroupedFileMax.
struct FileGroup {
  std::uint32_t first = 0;
  std::uint32_t end = 0;
};
// Returns the groups of small files, by number of file. A group has at most kGroupBlobsMax blobs and kGroupBytesMax
// bytes, or one file.
std::vector<FileGroup> group_files(const Manifest& manifest);
bool is_grouped(const File& file);
// Returns the group of a file that is_grouped().
FileGroup group_of(std::span<const FileGroup> groups, std::uint32_t file);

// Returns the other shards of a file of weights, in order: large files with tensors, of the same format, whose path
// differs in digits alone. None for other files.
std::vector<std::uint32_t> shards_of(const Manifest& manifest, std::uint32_t file);

// Returns the units of the batch that has this unit, and of the batch behind it: [first, second). For plans of groups.
std::pair<std::size_t, std::size_t> batch_of(const FetchPlan& plan, std::size_t unit);
std::pair<std::size_t, std::size_t> next_batch(const FetchPlan& plan, std::size_t unit);

// Returns the numbers of the units that overlap a range of the pack: [first, second).
std::pair<std::size_t, std::size_t> units_in(const FetchPlan& plan, Range range);

}  // namespace weft
