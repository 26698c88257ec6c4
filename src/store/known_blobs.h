// What of an import's content is in the store already, and the locks that keep it there.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "store/packs.h"
#include "weft/result.h"

namespace weft {

struct Candidate {
  ContentId id;
  LockedPlace place;
};

// One thread. Each pack it ever answered with stays under a shared lock for as long as this lives.
class KnownBlobs {
 public:
  KnownBlobs(Packs& packs, IndexAccess& index) : packs_(packs), index_(index) {}

  // For each id the blobs with its length and XXH3-128; with `proven` only that with its root. The answer is of one or
  // more states of the index that were read after the locks had been taken.
  Result<std::vector<std::vector<Candidate>>> look_up(std::span<const ContentId> ids, bool proven);
  Result<bool> any_of_length(std::uint64_t length);
  bool holds(PackId pack) const { return held_.contains(pack); }

 private:
  using Rows = std::vector<std::pair<ContentId, BlobPlace>>;
  static Result<Rows> rows_of(BlobIndex& index, const ContentId& id, bool proven);
  Result<std::vector<PackId>> try_look_up(std::span<const ContentId> ids, bool proven,
                                          std::vector<std::vector<Candidate>>& out);
  Status hold(std::span<const PackId> packs);

  Packs& packs_;
  IndexAccess& index_;
  std::unordered_map<PackId, std::shared_ptr<const OpenPack>> held_;
};

}  // namespace weft
