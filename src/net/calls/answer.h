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

class OpenAnswer final : public Answer {
 public:
  OpenAnswer(std::shared_ptr<CallLink> link, AnswerMessage message, Deadline called);
  ~OpenAnswer() override;
  OpenAnswer(const OpenAnswer&) = delete;
  OpenAnswer& operator=(const OpenAnswer&) = delete;

  std::span<const std::byte> head() const override { return message_.head; }
  std::size_t windows() const override { return message_.windows.size(); }
  std::uint64_t length(std::size_t window) const override { return message_.windows.at(window).length; }
  Deadline open_until() const override { return lease_->until(); }
  Result<WindowRead> read(std::size_t window, std::uint64_t offset, std::shared_ptr<Landing> landing, std::size_t at,
                          std::size_t length) override;
  Status wait(PendingRead& read, std::chrono::milliseconds patience, const OnSign& on_sign) override;
  Deadline keep_open() override;
  // Reads the head from the first window, and drops that window. Errc::corrupt if the head does not match its hash,
  // Errc::timed_out if it arrived after the window's lease.
  Status fetch_head(const LandingBuffer& buffer, Deadline deadline);

 private:
  std::shared_ptr<CallLink> link_;
  AnswerMessage message_;
  bool opened_;  // the answer has windows, which the peer has to close
  const std::shared_ptr<WindowLease> lease_;
  std::shared_ptr<AnswerReads> reads_ = std::make_shared<AnswerReads>();
};

}  // namespace weft::net
