// Memory that is read into from peers, with its registration. Hardware takes long to register memory: where it has to
// be, blocks are kept, registered, for the next read.
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
    std::shared_ptr<Landing> landing;  // of that memory; null if it cannot be registered
  };
  // Until close(), `exchange` outlives this.
  explicit ReadBlocks(Exchange& exchange) : exchange_(&exchange) {}

  // At least so many bytes.
  Block take(std::size_t size);
  void close();  // keeps none any more

 private:
  Block make(std::size_t size) const;
  void give_back(Block block);

  std::mutex mutex_;
  Exchange* exchange_;       // guarded by mutex_, as the next; null after close()
  std::vector<Block> kept_;  // all of kReadBlockBytes
};

}  // namespace weft
