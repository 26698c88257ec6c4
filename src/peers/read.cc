#include "peers/read.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <utility>

#include <fmt/core.h>

#include "weft/deadline.h"

namespace weft {
namespace {

constexpr std::size_t kBuffersMax = 2;  // buffers of the exchange for one answer: all answers share a few
constexpr std::size_t kInFlightMax = 64;
// After a failure, the wait for each read that is still in flight.
constexpr std::chrono::milliseconds kFailedWait{20};

Status check_size(const Answer& answer, std::size_t expected) {
  std::uint64_t size = answer.windows() == 0 ? answer.head().size() : 0;
  bool too_long = false;
  for (std::size_t window = 0; window < answer.windows(); ++window) {
    too_long = too_long || answer.length(window) > expected - size;
    if (!too_long) size += answer.length(window);
  }
  if (!too_long && size == expected) return {};
  return Error{Errc::corrupt,
               fmt::format("peer: expected {} bytes, got {}{}", expected, size, too_long ? " and more" : "")};
}

// A part of a window, with its place in the target.
struct Piece {
  std::size_t window = 0;
  std::uint64_t offset = 0;
  std::size_t at = 0;  // of the target
  ReadWindow::Piece on_wire = {};
};

// Reads in flight, oldest first; each with a buffer when it does not go straight to its place.
class Flight {
 public:
  Flight(Exchange& exchange, Answer& answer, PeerTarget& target, const PeerPatience& patience)
      : exchange_(exchange), answer_(answer), target_(target), patience_(patience) {}

  // Fills the target with the bytes of the windows from offset `skip` on.
  Status run(std::uint64_t skip) {
    std::size_t at = 0;
    for (std::size_t window = 0; window < answer_.windows(); ++window) {
      const std::uint64_t length = answer_.length(window);
      std::uint64_t offset = std::min(skip, length);
      skip -= offset;
      while (offset < length && at < target_.memory.size()) {
        const std::uint64_t left = std::min<std::uint64_t>(length - offset, target_.memory.size() - at);
        auto added = add({window, offset, at}, static_cast<std::size_t>(left));
        if (!added.ok()) return finish(std::move(added).error());
        offset += *added;
        at += *added;
      }
    }
    return finish({});
  }

 private:
  struct Flying {
    Piece piece;
    std::unique_ptr<LandingBuffer> buffer;
    WindowRead read;
  };

  // Asks for a piece of at most `left` bytes once there is room for it; its length.
  Result<std::size_t> add(Piece piece, std::size_t left) {
    while (reads_.size() >= depth()) WEFT_CHECK(finish_oldest());
    if (granted_ == 0) WEFT_CHECK(take_turn(left));
    for (;;) {
      const auto asked = patience_.pace.ask(std::min(left, granted_), reads_.empty());
      if (asked) {
        piece.on_wire = *asked;
        break;
      }
      WEFT_CHECK(finish_oldest());
    }
    granted_ -= piece.on_wire.length;
    Status begun = begin(piece);
    if (begun.ok()) return piece.on_wire.length;
    patience_.pace.lost(piece.on_wire);
    return std::move(begun).error();
  }

  // Waits until this node's rates let a piece go. The reads in flight end first: the time of the wait is then not
  // theirs, and says nothing about the peer.
  Status take_turn(std::size_t left) {
    granted_ = patience_.paced == nullptr ? left : patience_.paced->piece(left);
    if (patience_.paced == nullptr || patience_.paced->may_go(granted_)) return {};
    WEFT_CHECK(finish({}));
    heard_ = Deadline::clock::now();
    return patience_.paced->take_turn(granted_, target_.held, [this] { return stay(); });
  }

  // Keeps the windows open while the read is held back.
  Status stay() {
    if (patience_.is_wanted && !patience_.is_wanted()) return Error{Errc::cancelled, "peer: no longer wanted"};
    const Deadline heard = answer_.keep_open();
    const Deadline now = Deadline::clock::now();
    if (now > answer_.open_until() || now > std::max(heard_, heard) + patience_.patience)
      return Error{Errc::timed_out, "peer: it fell silent while its bytes waited for their turn"};
    if (heard <= heard_) return {};
    heard_ = heard;
    if (!patience_.on_sign || patience_.on_sign()) return {};
    return Error{Errc::cancelled, "peer: no longer wanted"};
  }

  Status begin(const Piece& piece) {
    Flying flying{piece, nullptr, nullptr};
    std::shared_ptr<Landing> landing = target_.landing;
    std::size_t at = target_.at + piece.at;
    if (!landing) {
      WEFT_TRY(auto buffer, exchange_.landing(deadline_in(patience_.patience)));
      flying.buffer = std::make_unique<LandingBuffer>(std::move(buffer));
      landing = flying.buffer->landing();
      at = 0;
    }
    WEFT_TRY(flying.read, answer_.read(piece.window, piece.offset, std::move(landing), at, piece.on_wire.length));
    reads_.push_back(std::move(flying));
    return {};
  }

  // Waits for all reads, also after a failure: a read that has not ended may still write to its memory.
  Status finish(Status status) {
    while (!reads_.empty()) {
      Status one = finish_oldest(status.ok());
      if (status.ok()) status = std::move(one);
    }
    return status;
  }

  std::size_t depth() const { return target_.landing ? kInFlightMax : kBuffersMax; }

  // Waits for a read. While the peer is silent, the wait ends once nobody wants the bytes.
  Status wait(PendingRead& read, std::chrono::milliseconds patience) {
    if (!patience_.is_wanted) return answer_.wait(read, patience, patience_.on_sign);
    Deadline gives_up = deadline_in(patience);
    const auto on_sign = [&] {
      gives_up = deadline_in(patience);
      return !patience_.on_sign || patience_.on_sign();
    };
    for (;;) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(gives_up - Deadline::clock::now());
      Status waited = answer_.wait(read, std::min(left, kSignEvery), on_sign);
      if (waited.ok() || waited.error().code != Errc::timed_out || Deadline::clock::now() >= gives_up) return waited;
      if (!patience_.is_wanted()) return Error{Errc::cancelled, "peer: no longer wanted"};
    }
  }

  // `goes_on`: all before it have come.
  Status finish_oldest(bool goes_on = true) {
    const Flying flying = std::move(reads_.front());
    reads_.pop_front();
    Status done = wait(*flying.read, goes_on ? patience_.patience : kFailedWait);
    if (!done.ok()) {
      patience_.pace.lost(flying.piece.on_wire);
      const bool over = done.error().code != Errc::timed_out && done.error().code != Errc::unreachable &&
                        done.error().code != Errc::cancelled;
      if (!over && !flying.buffer) target_.spoiled = true;
      return done;
    }
    patience_.pace.came(flying.piece.on_wire);
    if (Deadline::clock::now() > answer_.open_until())
      return Error{Errc::timed_out, "peer: bytes came after their window had ended"};
    const std::size_t length = flying.piece.on_wire.length;
    if (flying.buffer) std::memcpy(&target_.memory[flying.piece.at], flying.buffer->bytes().data(), length);
    if (goes_on) target_.came = flying.piece.at + length;
    if (patience_.on_sign && !patience_.on_sign()) return Error{Errc::cancelled, "peer: no longer wanted"};
    return {};
  }

  Exchange& exchange_;
  Answer& answer_;
  PeerTarget& target_;
  const PeerPatience& patience_;
  std::deque<Flying> reads_;
  std::size_t granted_ = 0;  // bytes that may go now
  Deadline heard_{};         // the begin of the last wait for a turn, or the last sign of life in it
};

}  // namespace

Status read_answer(Exchange& exchange, Answer& answer, PeerTarget& target, const PeerPatience& patience) {
  WEFT_CHECK(check_size(answer, target.memory.size()));
  if (answer.windows() == 0) {
    std::ranges::copy(answer.head(), target.memory.begin());
    target.came = target.memory.size();
    return {};
  }
  return Flight(exchange, answer, target, patience).run(0);
}

Status read_windows(Exchange& exchange, Answer& answer, std::uint64_t from, PeerTarget& target,
                    const PeerPatience& patience) {
  std::uint64_t left = from + target.memory.size();
  for (std::size_t window = 0; window < answer.windows(); ++window) left -= std::min(left, answer.length(window));
  if (left > 0) return Error{Errc::corrupt, fmt::format("peer: {} bytes are missing in the windows", left)};
  return Flight(exchange, answer, target, patience).run(from);
}

Result<std::vector<std::byte>> answer_bytes(Exchange& exchange, Answer& answer, std::uint64_t bytes_max,
                                            const PeerPatience& patience) {
  std::uint64_t size = answer.head().size();
  if (answer.windows() > 0) size = answer.length(0);
  if (size > bytes_max)
    return Error{Errc::corrupt, fmt::format("peer: expected at most {} bytes, got {}", bytes_max, size)};
  std::vector<std::byte> bytes(size);
  PeerTarget target{bytes, nullptr};
  WEFT_CHECK(read_answer(exchange, answer, target, patience));
  return bytes;
}

}  // namespace weft
