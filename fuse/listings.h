// What each open directory handle lists: rendered once, so that one opendir(3) shows one state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "freshness.h"
#include "weft/vfs.h"

namespace weft {

// "." and ".." come first. Immutable once made.
struct Listing {
  std::vector<DirEntry> entries;
  Freshness::Time looked = 0;  // before they were read
};

Result<std::shared_ptr<const Listing>> render_listing(Vfs& vfs, Ino dir, Freshness::Time looked);

// Any thread.
class Listings {
 public:
  // `generation`: how many servers this mount had before. A handle of theirs is no handle of ours.
  explicit Listings(std::uint32_t generation) : next_((std::uint64_t{generation} << 32U) + 1) {}

  std::uint64_t keep(std::shared_ptr<const Listing> listing);       // returns its handle, never 0; nullptr: for fill()
  std::shared_ptr<const Listing> find(std::uint64_t handle) const;  // nullptr for a handle that is not ours, or empty
  void fill(std::uint64_t handle, std::shared_ptr<const Listing> listing);
  void drop(std::uint64_t handle);

 private:
  mutable std::mutex mutex_;
  std::uint64_t next_;                                                          // guarded by mutex_
  std::unordered_map<std::uint64_t, std::shared_ptr<const Listing>> listings_;  // guarded by mutex_
};

}  // namespace weft
