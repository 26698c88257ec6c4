// Fills a file with runs of packs. It shares their blocks if the file system can and the offsets allow it, and copies
// the other bytes.
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

// How to fill a file: every byte is in one of these runs.
struct FillPlan {
  std::vector<Run> clones;  // whole blocks to share
  std::vector<Run> copies;  // runs to copy, by offset
  std::uint64_t copied_bytes = 0;
  std::uint64_t size = 0;
};
// `block_bytes` is the block size of the file system, a power of two; 0: it cannot share blocks.
FillPlan plan_fill(std::span<const Run> runs, std::uint64_t block_bytes);

// Returns the block size of the file system of `directory` if its files can share blocks, else 0. Tests this with
// unnamed files. An error if they cannot be made or written now: Errc::permission, Errc::read_only, Errc::no_space.
Result<std::uint64_t> sharing_block_bytes(const SafePath& directory);

// Fills `out`, an empty file, up to plan.size bytes. Afterwards the page cache holds whole, large pages of it or none.
// Polls `cancelled` every few MiB and then fails with Errc::cancelled.
Status fill(int out, const FillPlan& plan, const std::string& where, const std::function<bool()>& cancelled);

}  // namespace weft
