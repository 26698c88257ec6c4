// What directories list. Nobody tells when a directory is opened or closed: whoever reads on names the place where he
// is, and that finds the listing he began with, so that one opendir(3) shows one state. Names that last are where they
// were in every listing; the others' listings have numbers, which are part of a place.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/lru_cache.h"
#include "weft/vfs.h"

namespace weft {

// "." and ".." come first. Immutable once made.
struct Listing {
  Ino dir = 0;
  bool lasting = false;  // the names
  std::vector<DirEntry> entries;
  std::uint64_t position = 0;  // of the tree, before they were read
  std::uint32_t number = 0;    // 0 when the names last
};

// A place in a listing, as the kernel hands it back.
struct ListingPlace {
  std::uint32_t number = 0;  // of the listing
  std::uint32_t index = 0;   // in it

  static ListingPlace at(std::int64_t offset);
  std::int64_t offset() const { return static_cast<std::int64_t>(number) << 32U | index; }
};

// Any thread.
class Listings {
 public:
  // `generation`: how many servers this mount had before. Their listings are none of ours.
  explicit Listings(std::uint32_t generation) : numbers_(generation << kNumberBits) {}

  struct Found {
    std::shared_ptr<const Listing> listing;
    bool current = false;  // no commit came since
  };
  // The listing of `dir` that goes on at `place`; at its beginning a current one. When that was too long ago, and after
  // a restart, another takes its place.
  Result<Found> find(Vfs& vfs, Ino dir, ListingPlace place);

  // Gives back memory that was not used for some time.
  void trim();

 private:
  // Of the numbered ones every reader may need his own; the others can be made again.
  static constexpr std::size_t kBytesMax = 8U << 20U;
  static constexpr std::chrono::seconds kKeptFor{10};
  static constexpr std::chrono::minutes kNumberedKeptFor{10};
  static constexpr unsigned kNumberBits = 20;

  std::shared_ptr<const Listing> known(Ino dir, ListingPlace place, std::uint64_t position);
  std::uint32_t next_number();

  LruCache<Listing> latest_{kBytesMax};    // by directory
  LruCache<Listing> numbered_{kBytesMax};  // by number
  std::mutex mutex_;
  std::uint32_t numbers_;  // guarded by mutex_
};

}  // namespace weft
