// Puts a file together from runs of packs: by sharing their blocks where the file system can and the offsets allow it,
// by copying otherwise.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "blobs/open_blobs.h"
#include "os/safe_path.h"
#include "weft/result.h"

namespace weft {

// How a file can be put together: every byte is in one of these runs.
struct FillPlan {
  std::vector<Run> clones;  // whole blocks
  std::vector<Run> copies;  // in order
  std::uint64_t copied_bytes = 0;
  std::uint64_t size = 0;
};
// `block_bytes`: of the file system, a power of two; 0: nothing can be shared.
FillPlan plan_fill(std::span<const Run> runs, std::uint64_t block_bytes);

// The block size of the file system of `directory` if its files can share blocks, else 0. Tried with files without a
// name.
std::uint64_t sharing_block_bytes(const SafePath& directory);

// Fills `out`, an empty file of plan.size bytes. Its pages in the page cache are whole and large afterwards, or none.
// Asks `cancelled` every few MiB: Errc::cancelled.
Status fill(int out, const FillPlan& plan, const std::string& where, const std::function<bool()>& cancelled);

}  // namespace weft
