// The outcome of a read, shared by the transport and the waiting caller. Any thread.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>

#include "weft/cluster/transport.h"

namespace weft::net {

class ReadOutcome {
 public:
  bool finish(Status outcome);  // the first call counts; false if the read was over
  Status wait(PendingRead::Clock::time_point deadline);
  void set_aside();
  bool is_set_aside() const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;       // guarded by mutex_
  bool set_aside_ = false;  // guarded by mutex_
  Status outcome_;          // guarded by mutex_
};

// The caller's handle on a read.
class AwaitedRead final : public PendingRead {
 public:
  explicit AwaitedRead(std::shared_ptr<ReadOutcome> outcome) : outcome_(std::move(outcome)) {}
  ~AwaitedRead() override { outcome_->set_aside(); }
  AwaitedRead(const AwaitedRead&) = delete;
  AwaitedRead& operator=(const AwaitedRead&) = delete;
  Status wait(Clock::time_point deadline) override { return outcome_->wait(deadline); }

 private:
  std::shared_ptr<ReadOutcome> outcome_;
};

}  // namespace weft::net
