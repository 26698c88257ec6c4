// Memory blocks for reads from peers, with their registrations. Hardware takes long to register memory, so registered
// blocks are kept for the next read.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "weft/cluster/exchange.h"

namespace weft {

// Any thread. Made by make_shared.
class ReadBlocks : public std::enable_shared_from_this<ReadBlocks> {
 public:
  struct Block {
    std::shared_ptr<std::byte[]> memory;
    std::shared_ptr<Landing> landing;  // of `memory`; null if it cannot be registered
  };
  // `exchange` must live until close().
  explicit ReadBlocks(Exchange& exchange) : exchange_(exchange) {}

  // Returns a block of at least `size` bytes. Call it before close().
  Block take(std::size_t size);
  void close();  // drops the kept blocks, and keeps no others

 private:
  Block make(std::size_t size) const;
  void give_back(Block block);

  Exchange& exchange_;  // not used after close()
  Mutex mutex_;
  bool closed_ WEFT_GUARDED_BY(mutex_) = false;
  std::vector<Block> kept_ WEFT_GUARDED_BY(mutex_);  // each of kReadBlockBytes
};

}  // namespace weft
