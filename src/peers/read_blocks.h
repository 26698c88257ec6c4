// Memory blocks for reads from peers, with their registrations. Hardware takes long to register memory, so registered
// blocks are kept for the next read.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "weft/exchange.h"

namespace weft {

// Any thread. Made by make_shared.
class ReadBlocks : public std::enable_shared_from_this<ReadBlocks> {
 public:
  struct Block {
    std::shared_ptr<std::byte[]> memory;
    std::shared_ptr<Landing> landing;  // of `memory`; null if it cannot be registered
  };
  // `exchange` must live until close().
  explicit ReadBlocks(Exchange& exchange) : exchange_(&exchange) {}

  // Returns a block of at least `size` bytes.
  Block take(std::size_t size);
  void close();  // drops the kept blocks, and keeps no others

 private:
  Block make(std::size_t size) const;
  void give_back(Block block);

  std::mutex mutex_;
  Exchange* exchange_;       // guarded by mutex_, as the next; null after close()
  std::vector<Block> kept_;  // each of kReadBlockBytes
};

}  // namespace weft
