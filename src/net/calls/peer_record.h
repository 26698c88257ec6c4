// What is known of a peer by calling it. Any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>

#include "weft/exchange.h"

namespace weft::net {

class PeerRecord {
 public:
  explicit PeerRecord(std::string node) { figures_.node = std::move(node); }

  void answered(std::chrono::duration<double> after);
  void failed();
  // So many bytes came while reads of one answer were in flight for so long.
  void read(std::uint64_t bytes, std::chrono::duration<double> in);
  PeerFigures figures() const;  // but for `connected`

 private:
  mutable std::mutex mutex_;
  PeerFigures figures_;  // guarded by mutex_
};

}  // namespace weft::net
