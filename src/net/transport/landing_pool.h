// A pool of landing buffers, registered once and lent out one at a time. Any thread.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "weft/cluster/exchange.h"

namespace weft::net {

class LandingPool : public std::enable_shared_from_this<LandingPool> {
 public:
  // `transport` outlives all lent buffers.
  explicit LandingPool(Transport& transport) : transport_(transport) {}

  // Errc::busy if no buffer was free by the deadline.
  Result<LandingBuffer> take(Deadline deadline);
  void give_back(std::shared_ptr<Landing> buffer);
  std::size_t aside() const;
  void close();  // drops the buffers that are not lent; call it before the transport ends

 private:
  // With mutex_ held:
  void reclaim();
  bool may_make() const;
  Result<std::shared_ptr<Landing>> make();

  Transport& transport_;
  mutable std::mutex mutex_;
  std::condition_variable freed_;
  std::vector<std::shared_ptr<Landing>> free_;   // guarded by mutex_, as the members below
  std::vector<std::shared_ptr<Landing>> aside_;  // an abandoned read may still write to these
  std::size_t lent_ = 0;
};

}  // namespace weft::net
