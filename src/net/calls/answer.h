// What an Answer is made of.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "net/calls/call_link.h"
#include "weft/exchange.h"

namespace weft::net {

// The reads of one answer: how many are in flight, and what came. Outlives the answer with its reads. Any thread.
class AnswerReads {
 public:
  using Clock = std::chrono::steady_clock;
  void begin();
  void end(std::uint64_t bytes);
  bool in_flight() const;
  std::uint64_t bytes() const;
  Clock::duration busy() const;  // while any was in flight

 private:
  mutable std::mutex mutex_;
  std::size_t in_flight_ = 0;  // guarded by mutex_, as all that follows
  std::uint64_t bytes_ = 0;
  Clock::time_point since_{};
  Clock::duration busy_{};
};

}  // namespace weft::net

namespace weft {

class Answer::Impl {
 public:
  Impl(std::shared_ptr<net::CallLink> link, net::AnswerMessage message, Deadline called);
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  const net::AnswerMessage& message() const { return message_; }
  Deadline open_until() const { return lease_->until(); }
  Result<WindowRead> read(std::size_t window, std::uint64_t offset, std::shared_ptr<Landing> landing, std::size_t at,
                          std::size_t length);
  // As Answer::wait.
  Status wait(PendingRead& read, std::chrono::milliseconds patience, const OnSign& on_sign);
  // Puts what the first window holds into the head's place. Errc::corrupt when it is not what the answer promised,
  // Errc::timed_out when it came after its window was open.
  Status fetch_head(const LandingBuffer& buffer, Deadline deadline);

 private:
  std::shared_ptr<net::CallLink> link_;
  net::AnswerMessage message_;
  bool opened_;  // windows, that the peer has to close
  const std::shared_ptr<net::WindowLease> lease_;
  std::shared_ptr<net::AnswerReads> reads_ = std::make_shared<net::AnswerReads>();
};

}  // namespace weft
