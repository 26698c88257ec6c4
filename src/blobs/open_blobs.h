// Blobs held where they are: gc moves nothing out of a locked pack.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/lru_cache.h"
#include "weft/pack.h"
#include "weft/run.h"
#include "weft/snapshot.h"
#include "weft/store.h"

namespace weft {

// Where the blobs of some files were, so that opening a file again does not look each of them up. Any thread.
class KnownPlaces {
 public:
  struct Run {
    std::size_t first = 0;     // of the file's blobs that lie there one after the other
    std::uint64_t length = 0;  // of them all
    BlobPlace place;
  };
  struct Places {
    IndexState state;  // that they are true in
    std::size_t blobs = 0;
    std::vector<Run> runs;
  };
  std::shared_ptr<const Places> find(Ino file) { return places_.find(file); }
  void put(Ino file, Places places) {
    const std::size_t bytes = sizeof places + places.runs.capacity() * sizeof(Run);
    places_.put(file, std::make_shared<Places>(std::move(places)), bytes);
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
Result<std::vector<OpenPlace>> open_blobs(Store& store, std::span<const ContentId> blobs);
// The same, but those that are absent are left without a pack.
Result<std::vector<OpenPlace>> open_present_blobs(Store& store, std::span<const ContentId> blobs);

// As open_blobs(), of a file that is these blobs from `offset` on.
Result<std::vector<Run>> open_runs(Store& store, std::span<const ContentId> blobs, std::uint64_t offset,
                                   Remembered known);

}  // namespace weft
