// The number of bytes of one peer on the wire, and the size of the pieces: both follow the speed of the peer. A piece
// is what the peer moves in a millisecond, from 128 KiB to 1 MiB. On a slow link it is smaller, so that it takes an
// eighth of a second. The window starts small, grows by each piece that comes without waiting behind others, as TCP's
// does in slow start, and falls to what the path holds once pieces wait. So other messages wait behind few bytes, and a
// slow link is not taken for a dead peer. Pure: the caller tells the time. Not for several threads.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "weft/deadline.h"

namespace weft {

class ReadWindow {
 public:
  static constexpr std::size_t kPieceStart = 16U << 10U;  // the least, and what the first piece has
  static constexpr std::size_t kPieceMin = 128U << 10U;   // where the peer moves that much in kPieceTimeMax
  static constexpr std::size_t kPieceMax = 1U << 20U;
  static constexpr std::size_t kBytesMax = 16U << 20U;  // on the wire
  // The longest queueing delay of a piece behind earlier pieces at which the window still grows.
  static constexpr std::chrono::milliseconds kQueue{25};
  static constexpr std::chrono::milliseconds kOnWireMax{500};
  static constexpr std::chrono::milliseconds kPieceTimeMax{125};
  // After such a pause the window starts small again: the link may have changed, or have more users.
  static constexpr std::chrono::seconds kIdle{10};

  // A piece that is on the wire.
  struct Piece {
    std::size_t length = 0;
    Deadline asked{};
    std::uint64_t came_before = 0;  // bytes that the peer had delivered when the piece was requested
    std::size_t beside = 0;         // bytes that were on the wire then, this piece included
  };

  // The length of the next piece.
  std::size_t piece() const;
  bool has_room(std::size_t length) const { return on_wire_ == 0 || on_wire_ + length <= window_; }
  Piece ask(std::size_t length, Deadline now);
  void came(const Piece& piece, Deadline now);
  void lost(const Piece& piece) { on_wire_ -= piece.length; }

  std::size_t window() const { return window_; }    // bytes
  double rate() const { return rate_; }             // bytes a second; 0: not known
  std::size_t on_wire() const { return on_wire_; }  // bytes

 private:
  using Seconds = std::chrono::duration<double>;
  void note_rate(const Piece& piece, Seconds took);
  void note_shortest(Seconds took, Deadline now);
  std::size_t held_in(Seconds time) const;

  std::size_t window_ = 2 * kPieceStart;
  std::size_t on_wire_ = 0;
  std::uint64_t came_ = 0;
  double rate_ = 0;
  Seconds shortest_{0};  // that a piece took lately
  Deadline shortest_at_{};
  Deadline last_{};
};

}  // namespace weft
