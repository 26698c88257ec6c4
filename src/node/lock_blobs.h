// Blobs held where they are: gc moves nothing out of a locked pack.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "node/vfs_cache.h"
#include "weft/store.h"

namespace weft {

// Where the blobs of some files were, so that opening a file again does not look each of them up. Any thread.
class KnownPlaces {
 public:
  struct Places {
    std::uint64_t sequence = 0;  // of the snapshot that they are true in
    std::vector<BlobPlace> of_blobs;
  };
  std::shared_ptr<const Places> find(Ino file) { return places_.find(file); }
  void put(Ino file, Places places) {
    const std::size_t bytes = sizeof places + places.of_blobs.capacity() * sizeof(BlobPlace);
    places_.put(file, std::make_shared<const Places>(std::move(places)), bytes);
  }
  void drop_unused(std::chrono::steady_clock::duration age) { places_.drop_unused(age); }

 private:
  LruCache<Places> places_{4U << 20U};
};

// Whose blobs these are, and where that is remembered.
struct Remembered {
  KnownPlaces* places = nullptr;  // nullptr: nowhere
  Ino file = 0;
};

// Each blob's place, all locked at once; equal packs are one PackReader. Errc::not_found when a blob is gone,
// Errc::absent when it is known and not here.
Result<std::vector<LockedPlace>> lock_blobs(Store& store, std::span<const ContentId> blobs, Remembered known = {});
// The same, but those that are absent are left without a pack.
Result<std::vector<LockedPlace>> lock_present_blobs(Store& store, std::span<const ContentId> blobs);

}  // namespace weft
