#include "peers/read.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <utility>

#include <fmt/core.h>

#include "weft/deadline.h"

namespace weft {
namespace {

constexpr std::size_t kPieceMax = 1U << 20U;
constexpr std::size_t kInFlightMax = 4;  // reads of one answer

// A part of a window, and where it goes.
struct Piece {
  std::size_t window = 0;
  std::uint64_t offset = 0;
  std::size_t at = 0;  // of the target
  std::size_t length = 0;
};

std::vector<Piece> pieces_of(const Answer& answer) {
  std::vector<Piece> pieces;
  std::size_t at = 0;
  for (std::size_t window = 0; window < answer.windows(); ++window)
    for (std::uint64_t offset = 0; offset < answer.length(window);) {
      const auto length = static_cast<std::size_t>(std::min<std::uint64_t>(kPieceMax, answer.length(window) - offset));
      pieces.push_back({window, offset, at, length});
      offset += length;
      at += length;
    }
  return pieces;
}

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

// Reads in flight, oldest first; each with a buffer when it does not go straight to its place.
class Flight {
 public:
  Flight(Exchange& exchange, Answer& answer, PeerTarget& target, const PeerPace& pace)
      : exchange_(exchange), answer_(answer), target_(target), pace_(pace) {}

  Status add(const Piece& piece) {
    if (reads_.size() >= depth()) WEFT_CHECK(finish_oldest());
    Flying flying{piece, nullptr, nullptr};
    std::shared_ptr<Landing> landing = target_.landing;
    std::size_t at = target_.at + piece.at;
    if (!landing) {
      WEFT_TRY(auto buffer, exchange_.landing(deadline_in(pace_.patience)));
      flying.buffer = std::make_unique<LandingBuffer>(std::move(buffer));
      landing = flying.buffer->landing();
      at = 0;
    }
    WEFT_TRY(flying.read, answer_.read(piece.window, piece.offset, std::move(landing), at, piece.length));
    reads_.push_back(std::move(flying));
    return {};
  }

  // Waits for all, also after a failure: only what is over writes no more.
  Status finish(Status status) {
    while (!reads_.empty()) {
      Status one = finish_oldest();
      if (status.ok()) status = std::move(one);
    }
    return status;
  }

 private:
  struct Flying {
    Piece piece;
    std::unique_ptr<LandingBuffer> buffer;
    WindowRead read;
  };

  // Of buffers there are few for all: nobody holds some while waiting for many more.
  std::size_t depth() const { return target_.landing ? kInFlightMax : 2; }

  Status finish_oldest() {
    const Flying flying = std::move(reads_.front());
    reads_.pop_front();
    Status done = flying.read->wait(moved_ + pace_.patience);
    if (!done.ok()) {
      const bool over = done.error().code != Errc::timed_out && done.error().code != Errc::unreachable;
      if (!over && !flying.buffer) target_.spoiled = true;
      return done;
    }
    if (Deadline::clock::now() > answer_.open_until())
      return Error{Errc::timed_out, "peer: bytes came after their window had ended"};
    if (flying.buffer)
      std::memcpy(&target_.memory[flying.piece.at], flying.buffer->bytes().data(), flying.piece.length);
    moved_ = Deadline::clock::now();
    if (pace_.moved) pace_.moved();
    return {};
  }

  Exchange& exchange_;
  Answer& answer_;
  PeerTarget& target_;
  const PeerPace& pace_;
  std::deque<Flying> reads_;
  Deadline moved_ = Deadline::clock::now();
};

}  // namespace

Status read_answer(Exchange& exchange, Answer& answer, PeerTarget& target, const PeerPace& pace) {
  WEFT_CHECK(check_size(answer, target.memory.size()));
  if (answer.windows() == 0) {
    std::ranges::copy(answer.head(), target.memory.begin());
    return {};
  }
  Flight flight(exchange, answer, target, pace);
  for (const Piece& piece : pieces_of(answer))
    if (Status added = flight.add(piece); !added.ok()) return flight.finish(std::move(added));
  return flight.finish({});
}

Result<std::vector<std::byte>> answer_bytes(Exchange& exchange, Answer& answer, std::uint64_t bytes_max,
                                            const PeerPace& pace) {
  std::uint64_t size = answer.head().size();
  if (answer.windows() > 0) size = answer.length(0);
  if (size > bytes_max)
    return Error{Errc::corrupt, fmt::format("peer: expected at most {} bytes, got {}", bytes_max, size)};
  std::vector<std::byte> bytes(size);
  PeerTarget target{bytes, nullptr};
  WEFT_CHECK(read_answer(exchange, answer, target, pace));
  return bytes;
}

}  // namespace weft
