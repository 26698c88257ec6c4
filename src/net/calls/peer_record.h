// Statistics of the calls to one peer. Any thread.
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
  // Records that `bytes` of one answer were read, with reads in flight for `in`.
  void read(std::uint64_t bytes, std::chrono::duration<double> in);
  PeerFigures figures() const;  // without `connected`

 private:
  mutable std::mutex mutex_;
  PeerFigures figures_;  // guarded by mutex_
};

}  // namespace weft::net
