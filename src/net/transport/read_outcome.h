// The outcome of a read, shared by the transport and the waiting caller. Any thread.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>

#include "weft/cluster/transport.h"

namespace weft::net {

class ReadOutcome {
 public:
  void finish(Status outcome);  // the first call counts
  Status wait(PendingRead::Clock::time_point deadline);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Status> outcome_;  // guarded by mutex_; empty while the read is in flight
};

// The caller's handle on a read.
class AwaitedRead final : public PendingRead {
 public:
  explicit AwaitedRead(std::shared_ptr<ReadOutcome> outcome) : outcome_(std::move(outcome)) {}
  Status wait(Clock::time_point deadline) override { return outcome_->wait(deadline); }

 private:
  std::shared_ptr<ReadOutcome> outcome_;
};

}  // namespace weft::net
