// Directory listings, in pages. The kernel does not announce opens and closes of a directory. A reader that continues
// names the place of its last entry. Places are stable (weft/programs/vfs.h), so any server can continue there. A page
// is made once for all its readers. A reader may get a page older than another one, but never one older than the page
// before: so it finds each entry that exists all the while exactly once.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/lru_cache.h"
#include "base/mutex.h"
#include "weft/programs/vfs.h"

namespace weft {

// Immutable once made. The first page of a directory begins with "." and "..".
struct ListingPage {
  bool lasting = false;  // its names never change
  ListPlace from = 0;    // it begins after this place
  DirPage page;
  std::vector<ListPlace> places;  // of the entries
  std::uint64_t position = 0;     // position of the tree before the entries were read
  std::size_t bytes = 0;          // memory it takes
};

// Any thread.
class Listings {
 public:
  struct Found {
    std::shared_ptr<const ListingPage> listing;
    std::size_t index = 0;  // next entry in it; equal to the number of entries only at the end of the directory
    bool current = false;   // no commit has come since it was read
  };
  // Returns where the listing of `dir` continues after `place`. At the start of the directory the page is current.
  Result<Found> find(Vfs& vfs, Ino dir, ListPlace place) WEFT_EXCLUDES(keeping_);

  // Frees the memory of pages that were not used for kKeptFor.
  void trim() { directories_.drop_unused(kKeptFor); }

 private:
  static constexpr std::size_t kBytesMax = 8U << 20U;
  static constexpr std::size_t kBytesEachMax = kBytesMax / 2;  // per directory
  static constexpr std::size_t kPagesEachMax = 64;
  static constexpr std::size_t kBytesBeside = 320;  // memory of a directory besides its pages, in five allocations
  static constexpr std::chrono::seconds kKeptFor{10};

  // The pages of one directory, newest state first. If memory is short, the oldest ones or all are dropped.
  using Pages = std::vector<std::shared_ptr<const ListingPage>>;

  static Found known(const Pages& pages, ListPlace place, std::uint64_t position);
  void keep(Ino dir, const std::shared_ptr<const ListingPage>& made) WEFT_EXCLUDES(keeping_);

  LruCache<Pages> directories_{kBytesMax};
  Mutex keeping_;  // held while a page is added
};

}  // namespace weft
