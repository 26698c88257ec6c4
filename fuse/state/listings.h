// What directories list, in pages. Nobody tells when a directory is opened or closed: whoever reads on names the place
// behind which he is, and places stay (weft/vfs.h), so that any server can go on there. A page is made once for all who
// read in it. A reader may find a page that is older than another, but none that is older than the one he comes from:
// so he finds each entry that is there all the while once.
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

// Immutable once made. The first page of a directory begins with "." and "..".
struct ListingPage {
  bool lasting = false;  // the names
  ListPlace from = 0;    // behind which it begins
  DirPage page;
  std::vector<ListPlace> places;  // of its entries
  std::uint64_t position = 0;     // of the tree, before they were read
  std::size_t bytes = 0;          // of memory
};

// Any thread.
class Listings {
 public:
  struct Found {
    std::shared_ptr<const ListingPage> listing;
    std::size_t index = 0;  // where to go on in it; its size only at the end of the directory
    bool current = false;   // no commit came since
  };
  // Where the listing of `dir` goes on behind `place`; at the beginning as it is now.
  Result<Found> find(Vfs& vfs, Ino dir, ListPlace place);

  // Gives back memory that was not used for some time.
  void trim() { directories_.drop_unused(kKeptFor); }

 private:
  static constexpr std::size_t kBytesMax = 8U << 20U;
  static constexpr std::size_t kBytesEachMax = kBytesMax / 2;  // of one directory
  static constexpr std::size_t kPagesEachMax = 64;
  static constexpr std::chrono::seconds kKeptFor{10};

  // Of one directory, the newest state first. Where memory is short the oldest go first, or all.
  using Pages = std::vector<std::shared_ptr<const ListingPage>>;

  static Found known(const Pages& pages, ListPlace place, std::uint64_t position);
  void keep(Ino dir, const std::shared_ptr<const ListingPage>& made);

  LruCache<Pages> directories_{kBytesMax};
  std::mutex keeping_;  // one page is added at a time
};

}  // namespace weft
