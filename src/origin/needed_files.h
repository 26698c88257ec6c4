// The files of an origin that versions need, for a collection. For one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <set>
#include <vector>

#include "diskformat/origin_places.h"
#include "weft/content.h"
#include "weft/store_rows.h"

namespace weft {

// A blob counts by eight bytes of its root: an unlikely match keeps a pack.
class NeededFiles {
 public:
  void add_manifest(const Digest& manifest) { manifests_.insert(manifest); }
  bool has_manifest(const Digest& manifest) const { return manifests_.contains(manifest); }
  void add_blob(const ContentId& id) { blobs_.push_back(part_of(id)); }
  void add_places(const Places& places) {
    for (const auto& [id, place] : places.blobs) {
      add_blob(id);
      packs_.insert(place.pack);
    }
  }
  // A blob of a version that has no places yet: the version may get places in any pack that has the blob.
  void add_unplaced_blob(const ContentId& id) {
    add_blob(id);
    unplaced_.insert(part_of(id));
  }
  void add_unplaced() { all_placed_ = false; }          // a version without places
  void add_unknown() { all_placed_ = known_ = false; }  // one whose blobs are not known either
  void add_rewrite(PackId old, PackId copy) {           // places lead to the copy from now on
    packs_.erase(old);
    packs_.insert(copy);
  }
  const std::set<PackId>& packs() const { return packs_; }  // named by places
  bool all_placed() const { return all_placed_; }           // false: packs() may lack some
  // True if a version without places may get them in a pack with these blobs.
  bool may_place_in(const std::vector<ContentId>& blobs) const {
    return !known_ ||
           std::ranges::any_of(blobs, [this](const ContentId& id) { return unplaced_.contains(part_of(id)); });
  }
  bool has_blob(const ContentId& id) {
    sort();
    return std::ranges::binary_search(blobs_, part_of(id));
  }

 private:
  static std::uint64_t part_of(const ContentId& id) {
    std::uint64_t part = 0;
    std::memcpy(&part, id.root.bytes.data(), sizeof part);
    return part;
  }
  void sort() {
    if (sorted_ == blobs_.size()) return;
    std::ranges::sort(blobs_);
    blobs_.erase(std::unique(blobs_.begin(), blobs_.end()), blobs_.end());
    sorted_ = blobs_.size();
  }

  std::set<Digest> manifests_;
  std::set<PackId> packs_;
  std::set<std::uint64_t> unplaced_;  // blobs of versions without places
  bool all_placed_ = true, known_ = true;
  std::vector<std::uint64_t> blobs_;
  std::size_t sorted_ = 0;
};

}  // namespace weft
