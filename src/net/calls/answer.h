// The implementation of Answer.
#pragma once

#include <atomic>
#include <memory>

#include "net/calls/call_link.h"
#include "weft/cluster/exchange.h"

namespace weft::net {

// Counts the reads of one answer that are in flight, and the bytes read. The reads share it with the answer, so it may
// outlive the answer. Any thread.
struct AnswerReads {
  std::atomic<std::size_t> in_flight = 0;
  std::atomic<std::uint64_t> bytes = 0;
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
  // Reads the head from the first window, and drops that window. Errc::corrupt if the head does not match its hash,
  // Errc::timed_out if it arrived after the window's lease.
  Status fetch_head(const LandingBuffer& buffer, Deadline deadline);

 private:
  std::shared_ptr<net::CallLink> link_;
  net::AnswerMessage message_;
  bool opened_;  // the answer has windows, which the peer has to close
  const std::shared_ptr<net::WindowLease> lease_;
  std::shared_ptr<net::AnswerReads> reads_ = std::make_shared<net::AnswerReads>();
};

}  // namespace weft
