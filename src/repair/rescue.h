// Recovers the table of contents of a pack that lost it. What is known of the pack is tried first: rows of its damaged
// .toc, and places that the old index names. Then the rest of its bytes is searched for content that versions need.
// Every blob that a recovered table lists was read and hashed.
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
  bool empty() const { return blobs_ == 0; }
  // The content whose first bytes, `length` of them, have this head; the longest first.
  std::span<const ContentId> find(std::uint64_t length, std::uint64_t head) const;
  // The lengths of heads that find() knows, ascending: at most kExtentHeadBytes of them.
  std::vector<std::uint64_t> head_lengths() const;

 private:
  using ByHead = std::unordered_map<std::uint64_t, std::vector<ContentId>>;
  std::map<std::uint64_t, ByHead> by_length_;           // of the head
  std::unordered_map<ContentId, std::uint64_t> heads_;  // to erase by id
  std::size_t blobs_ = 0;
};

// The table of contents that this pack may have had. Content that it lists is erased from `wanted`. Errc::io and the
// like: the pack could not be read now.
Result<PackToc> rescue_toc(const PackDir& packs, PackId pack, std::span<const PlacedBlob> known, WantedBlobs& wanted,
                           const Progress& progress);
// The entries of this pack that are whole in its damaged .toc, to be verified; none if there is no .toc.
Result<std::vector<PlacedBlob>> salvaged_rows(const PackDir& packs, PackId pack);

class RepairPack;
// Copies blobs into `fresh` that an assembled file has whole, by its table of contents or wherever they lie in it, and
// erases them from `wanted`.
Status rescue_assembled(const PackDir& assembled, WantedBlobs& wanted, RepairPack& fresh, const Progress& progress);

}  // namespace weft
