#include "net/calls/answer.h"

#include <fmt/core.h>

#include <utility>

#include "net/calls/head_hash.h"

namespace weft::net {
namespace {

// A read that reports its end to the AnswerReads of its answer.
class CountedRead final : public PendingRead {
 public:
  CountedRead(WindowRead read, std::shared_ptr<CallLink> link, std::shared_ptr<AnswerReads> reads, std::size_t length)
      : read_(std::move(read)), link_(std::move(link)), reads_(std::move(reads)), length_(length) {}

  Status wait(Clock::time_point deadline) override {
    Status status = read_->wait(deadline);
    const bool over = status.ok() || status.error().code != Errc::timed_out;
    if (over && !std::exchange(over_, true)) {
      if (status.ok()) reads_->bytes += length_;
      --reads_->in_flight;
      if (status.ok()) link_->gave(length_);
    }
    return status;
  }

 private:
  WindowRead read_;
  std::shared_ptr<CallLink> link_;
  std::shared_ptr<AnswerReads> reads_;
  std::size_t length_;
  bool over_ = false;
};

}  // namespace

OpenAnswer::OpenAnswer(std::shared_ptr<CallLink> link, AnswerMessage message, Deadline called)
    : link_(std::move(link)),
      message_(std::move(message)),
      opened_(!message_.windows.empty()),
      lease_(opened_ ? link_->lease(message_.id, called) : std::make_shared<WindowLease>(called)) {}

// While a read is in flight, leaves the windows open until their lease ends: closing a window under a read makes some
// providers end the connection.
OpenAnswer::~OpenAnswer() {
  if (!opened_) return;
  link_->drop_lease(message_.id);
  if (reads_->in_flight == 0) link_->done(message_.id, reads_->bytes);
}

Result<WindowRead> OpenAnswer::read(std::size_t window, std::uint64_t offset, std::shared_ptr<Landing> landing,
                                    std::size_t at, std::size_t length) {
  if (window >= message_.windows.size())
    return Error{Errc::invalid, fmt::format("window {} of an answer with {}", window, message_.windows.size())};
  Channel& channel = link_->channel();
  WEFT_TRY(WindowRead begun,
           channel.transport().read(channel.peer(), message_.windows[window], offset, std::move(landing), at, length));
  ++reads_->in_flight;
  return WindowRead(std::make_unique<CountedRead>(std::move(begun), link_, reads_, length));
}

// The questions that keep the windows open also bring signs of life of the peer while its bytes take long.
Status OpenAnswer::wait(PendingRead& read, std::chrono::milliseconds patience, const OnSign& on_sign) {
  const auto begun = Deadline::clock::now();
  for (auto sign = begun;;) {
    link_->renew(message_.id, *lease_);
    const Deadline gives_up = std::max(begun, link_->heard()) + patience;
    Status status = read.wait(std::min(gives_up, Deadline::clock::now() + kSignEvery));
    if (status.ok() || status.error().code != Errc::timed_out) return status;
    const Deadline heard = link_->heard();
    if (heard > sign && on_sign && !on_sign())
      return Error{Errc::cancelled, fmt::format("peer {}: no longer wanted", link_->channel().node())};
    sign = std::max(sign, heard);
    if (Deadline::clock::now() >= std::max(begun, heard) + patience)
      return Error{Errc::timed_out, fmt::format("peer {}: nothing came for {:.0f} s", link_->channel().node(),
                                                std::chrono::duration<double>(patience).count())};
  }
}

Deadline OpenAnswer::keep_open() {
  link_->renew(message_.id, *lease_);
  return link_->heard();
}

Status OpenAnswer::fetch_head(const LandingBuffer& buffer, Deadline deadline) {
  const auto length = static_cast<std::size_t>(message_.windows.front().length);
  WEFT_TRY(const WindowRead begun, read(0, 0, buffer.landing(), 0, length));
  WEFT_CHECK(wait(*begun, std::chrono::ceil<std::chrono::milliseconds>(deadline - Deadline::clock::now()), {}));
  if (Deadline::clock::now() > open_until())
    return Error{Errc::timed_out, fmt::format("peer {}: the head of an answer came too late", link_->channel().node())};
  const std::span<const std::byte> head = buffer.bytes().first(length);
  message_.head.assign(head.begin(), head.end());
  if (head_hash(message_.head) != *message_.head_hash)
    return Error{Errc::corrupt,
                 fmt::format("peer {}: checksum mismatch in the head of an answer", link_->channel().node())};
  message_.windows.erase(message_.windows.begin());
  return {};
}

}  // namespace weft::net
