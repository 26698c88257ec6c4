// Recovers a lost table of contents of a pack. It first tries the known places of blobs: rows of the damaged .toc, and
// places of the old index. Then it searches the remaining bytes for content that versions need. Each blob of a
// recovered table was read and hashed.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <vector>

#include "diskformat/toc.h"
#include "packs/packs.h"
#include "weft/progress.h"
#include "weft/result.h"

namespace weft {

// Extents that versions need and no pack lists. One thread.
class WantedBlobs {
 public:
  void add(const Extent& extent);
  void erase(const ContentId& id);
  bool contains(const ContentId& id) const { return heads_.contains(id); }
  bool empty() const { return heads_.empty(); }
  // Returns the blobs whose first `length` bytes have the hash `head` (Extent::head), the longest blob first.
  std::span<const ContentId> find(std::uint64_t length, std::uint64_t head) const;
  // Returns the lengths for which find() has blobs, ascending; at most kExtentHeadBytes lengths.
  std::vector<std::uint64_t> head_lengths() const;

 private:
  using ByHead = std::unordered_map<std::uint64_t, std::vector<ContentId>>;
  std::map<std::uint64_t, ByHead> by_length_;           // by length of the head, bytes
  std::unordered_map<ContentId, std::uint64_t> heads_;  // head of each blob, for erase()
};

// Returns a recovered table of contents, and erases its blobs from `wanted`. `known` are unverified places. Errc::io
// and similar errors: the pack could not be read.
Result<PackToc> rescue_toc(const PackDir& packs, PackId pack, std::span<const PlacedBlob> known, WantedBlobs& wanted,
                           const Progress& progress);
std::vector<PlacedBlob> rows_of(const PackToc& toc);  // the places of the listed blobs
// Returns the undamaged entries of the pack's damaged .toc, whose blobs are not verified; none if there is no .toc.
Result<std::vector<PlacedBlob>> salvaged_rows(const PackDir& packs, PackId pack);

class RepairPack;
// Copies wanted blobs from assembled files into `fresh`, and erases them from `wanted`. Uses the tables of contents of
// the files, then searches their bytes.
Status rescue_assembled(const PackDir& assembled, WantedBlobs& wanted, RepairPack& fresh, const Progress& progress);

}  // namespace weft
