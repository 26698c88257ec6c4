// What of an import's content is in the store already, and the packs that it is in, open: gc may free such content, if
// no version needs it, until the import commits. The import then stores it anew, from the open packs.
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

// What the index says of one blob.
struct StoredBlob {
  bool known = false;
  OpenPlace place;  // no pack: the bytes are not where the index says
};

// One thread. Each pack it ever answered with stays open for as long as this lives.
class KnownBlobs {
 public:
  KnownBlobs(Packs& packs, IndexAccess& index) : packs_(packs), index_(index) {}

  // The answer is of one or more states of the index that were read after the packs had been opened.
  Result<std::vector<StoredBlob>> look_up(std::span<const ContentId> ids);
  // The content that a hint (tables.h) leads to, if the index knows such content.
  Result<std::optional<ContentId>> hinted(std::uint64_t length, std::uint64_t hint);
  bool holds(PackId pack) const { return held_.contains(pack); }

  // Notes that the import shares this content, which look_up() found there.
  void share(const ContentId& id, const OpenPlace& place) { shared_.emplace(id, place); }
  // What is shared and no longer in the index. With the writer lock held it stays so.
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
