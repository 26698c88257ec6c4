// Verifies one pack of an origin, and writes it again.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "diskformat/toc.h"
#include "origin/check.h"
#include "os/safe_path.h"
#include "weft/progress.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

// One thread.
class OriginPack {
 public:
  using Needed = std::vector<std::pair<ContentId, std::uint64_t>>;  // blobs that live versions need, with their offsets

  // `origin`: the directory.
  OriginPack(const SafePath& origin, PackId pack, Needed needed)
      : origin_(origin), pack_(pack), needed_(std::move(needed)) {}

  // Reads all bytes. Returns the fault, one line; nothing if the pack is whole, or if it is gone and not needed.
  Result<std::optional<std::string>> check(Progress& progress);
  std::uint64_t bytes_read() const { return bytes_read_; }
  // After a fault: writes the pack with its table of contents again, from its own whole blobs and those of `source`.
  // Drops a damaged blob only if no live version needs it and `source` lacks it: an undelete may need it.
  // Errc::not_found, Errc::corrupt and others: no source has a needed blob; the files stay as they were.
  Status repair(RepairSource& source, Progress& progress);

 private:
  Status write(const SafePath& path, RepairSource& source, Progress& progress);
  Status fill(int to, const PackEntry& lost, RepairSource& source, Progress& progress);

  const SafePath& origin_;
  const PackId pack_;
  const Needed needed_;
  PackToc toc_;                   // whole blobs
  std::vector<PackEntry> lost_;   // needed ones that are damaged, without digests
  std::vector<PackEntry> dead_;   // as lost_, of the blobs that no live version needs
  std::uint64_t bytes_read_ = 0;  // of blobs
};

}  // namespace weft
