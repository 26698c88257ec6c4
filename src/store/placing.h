// journal/placing: a small publish becomes durable by one write over blocks that are there already, instead of by the
// syncs of three files and two directories. These come when the publish is over, and then the record goes. Who opens
// the store as its daemon, or rebuilds it, puts in place what a machine that stopped in between has lost. One publish
// at a time; others go the long way. Any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/sys.h"
#include "store/packs.h"
#include "weft/result.h"

namespace weft {

inline constexpr std::size_t kPlacingMax = 128U << 10U;  // bytes of all that is placed

struct PlacedFiles {
  PackId pack = 0;
  std::vector<std::byte> pack_bytes, toc, manifest;
};

class Placing {
 public:
  explicit Placing(const std::string& store_path);

  // Whether the caller may write(); it gives back by clear() or leave().
  bool take();
  // Durable. Before anything of it is in place.
  Status write(const PlacedFiles& files);
  Status clear();                   // durable: nothing is being placed
  void leave() { taken_.clear(); }  // of who has written nothing

  // What the record has is whole, in place and durable afterwards, and the record gone. Paths of what was not in place.
  // For who keeps other writers out.
  static Result<std::vector<std::string>> finish(const std::string& store_path);
  // Of what finish() would put in place; changes nothing.
  static Result<std::vector<std::string>> missing(const std::string& store_path);

 private:
  const std::string path_;
  Fd fd_;                                      // by whoever has taken it
  std::atomic_flag taken_ = ATOMIC_FLAG_INIT;  // for good, when what was placed could not be synced
};

}  // namespace weft
