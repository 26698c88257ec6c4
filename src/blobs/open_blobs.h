// Opens blobs. An open pack keeps its bytes readable, even if gc moves its blobs to another pack.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/lru_cache.h"
#include "weft/bytes/pack.h"
#include "weft/bytes/run.h"
#include "weft/store/snapshot.h"
#include "weft/store/store.h"

namespace weft {

// Caches the places of files' blobs, so that another open of a file needs no lookup for each blob. Any thread.
class KnownPlaces {
 public:
  struct Run {
    std::size_t first = 0;     // index of its first blob among the file's blobs
    std::uint64_t length = 0;  // bytes of all its blobs
    BlobPlace place;
  };
  struct Places {
    IndexState state;  // the state of the index that has these places
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

// The cache for open_runs() and the file whose blobs are opened.
struct Remembered {
  KnownPlaces* places = nullptr;  // nullptr: no cache
  Ino file = 0;
};

// Opens all blobs and returns their places. Blobs of one pack share one PackReader. Errc::not_found: a blob is gone.
// Errc::absent: a blob is known but not local.
Result<std::vector<OpenPlace>> open_blobs(Store& store, std::span<const ContentId> blobs);
// The same, but an absent blob gets a place without a pack.
Result<std::vector<OpenPlace>> open_present_blobs(Store& store, std::span<const ContentId> blobs);

// Opens a file that consists of these blobs from `offset` on. Returns its runs, each in one pack. Errors as
// open_blobs().
Result<std::vector<Run>> open_runs(Store& store, std::span<const ContentId> blobs, std::uint64_t offset,
                                   Remembered known);

}  // namespace weft
