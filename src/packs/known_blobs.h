// The content of an import that the store already has, and the open packs that hold it. Until the import commits, gc
// may free such content if no version needs it. The import then stores it again, from the open packs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "packs/packs.h"
#include "weft/result.h"

namespace weft {

// The index entry of one blob.
struct StoredBlob {
  bool known = false;
  OpenPlace place;  // without a pack: the indexed place is not readable
};

// One thread. Each pack that look_up() returned stays open as long as this object lives.
class KnownBlobs {
 public:
  KnownBlobs(Packs& packs, IndexAccess& index) : packs_(packs), index_(index) {}

  // The results come from one state of the index that was read after their packs were opened.
  Result<std::vector<StoredBlob>> look_up(std::span<const ContentId> ids);
  // Returns the known content with this hint (index/blobs.h), if any.
  Result<std::optional<ContentId>> hinted(std::uint64_t length, std::uint64_t hint);
  bool holds(PackId pack) const { return held_.contains(pack); }

  // Records that the import shares this content, at a place that look_up() returned.
  void share(const ContentId& id, const OpenPlace& place) { shared_.emplace(id, place); }
  // Returns shared content that is not in the index any more. Under the writer lock the answer stays true.
  Result<std::vector<ContentId>> lost();
  const OpenPlace& place_of(const ContentId& shared) const { return shared_.at(shared); }
  void unshare(const ContentId& id) { shared_.erase(id); }

 private:
  Result<std::vector<PackId>> try_look_up(std::span<const ContentId> ids, std::vector<StoredBlob>& out);
  Status hold(std::span<const PackId> packs);

  Packs& packs_;
  IndexAccess& index_;
  std::unordered_map<PackId, std::shared_ptr<const OpenPack>> held_;
  std::unordered_map<ContentId, OpenPlace> shared_;
};

}  // namespace weft
