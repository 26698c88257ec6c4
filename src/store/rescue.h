// Finding blobs in a pack whose table of contents is lost: what versions need and no other pack has is looked for in
// its bytes. Blobs lie one after the other, large ones at multiples of 4096, so that few places must be tried.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "store/packs.h"
#include "weft/progress.h"
#include "weft/result.h"

namespace weft {

// Wanted content, by length. One thread.
class WantedBlobs {
 public:
  void add(const ContentId& id) { by_length_[id.length].insert(id.root); }
  void erase(const ContentId& id);
  bool empty() const { return by_length_.empty(); }
  const std::map<std::uint64_t, std::set<Digest>>& by_length() const { return by_length_; }

 private:
  std::map<std::uint64_t, std::set<Digest>> by_length_;
};

// The table of contents that this pack may have had, of wanted blobs alone; they are wanted no more. Every blob that it
// lists was read and hashed.
Result<PackToc> rescue_toc(Packs& packs, PackId pack, WantedBlobs& wanted, const Progress& progress);

}  // namespace weft
