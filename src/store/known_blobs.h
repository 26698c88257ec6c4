// What of an import's content is in the store already, and the locks that keep it there.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "store/packs.h"
#include "weft/result.h"

namespace weft {

// What the index says of one blob.
struct StoredBlob {
  bool known = false;
  LockedPlace place;  // no pack: the bytes are not where the index says
};

// One thread. Each pack it ever answered with stays under a shared lock for as long as this lives.
class KnownBlobs {
 public:
  KnownBlobs(Packs& packs, IndexAccess& index) : packs_(packs), index_(index) {}

  // The answer is of one or more states of the index that were read after the locks had been taken.
  Result<std::vector<StoredBlob>> look_up(std::span<const ContentId> ids);
  // The content that a hint (tables.h) leads to, if the index knows such content.
  Result<std::optional<ContentId>> hinted(std::uint64_t length, std::uint64_t hint);
  bool holds(PackId pack) const { return held_.contains(pack); }

 private:
  Result<std::vector<PackId>> try_look_up(std::span<const ContentId> ids, std::vector<StoredBlob>& out);
  Status hold(std::span<const PackId> packs);

  Packs& packs_;
  IndexAccess& index_;
  std::unordered_map<PackId, std::shared_ptr<const OpenPack>> held_;
};

}  // namespace weft
