#include "peers/read_window.h"

namespace weft {
namespace {

constexpr std::chrono::duration<double> kTells{0.1};  // a piece this slow determines the rate alone
constexpr double kTellsMin = 1.0 / 16;                // the weight of an instant piece
constexpr std::chrono::seconds kShortestKept{10};
constexpr double kPieceSeconds = 0.001;
constexpr std::size_t kRound = 4096;

double in_seconds(std::chrono::duration<double> time) {
  return time.count();
}

}  // namespace

// Two pieces at least fit into the window: while one comes, the next is on its way.
std::size_t ReadWindow::piece() const {
  if (rate_ == 0) return kPieceStart;
  const auto usual = std::clamp<double>(rate_ * kPieceSeconds, kPieceMin, kPieceMax);
  const auto in_time = std::min(usual, rate_ * in_seconds(kPieceTimeMax));
  const auto length = std::min<std::size_t>(static_cast<std::size_t>(in_time), window_ / 2);
  return std::max(kPieceStart, length / kRound * kRound);
}

std::size_t ReadWindow::held_in(Seconds time) const {
  return static_cast<std::size_t>(std::min(rate_ * time.count(), static_cast<double>(kBytesMax)));
}

ReadWindow::Piece ReadWindow::ask(std::size_t length, Deadline now) {
  if (on_wire_ == 0 && now > last_ + kIdle) *this = ReadWindow();
  last_ = now;
  on_wire_ += length;
  return {length, now, came_, on_wire_};
}

// Samples the delivery rate as BBR does: all bytes of the peer that arrived while the piece was on the wire.
void ReadWindow::note_rate(const Piece& piece, Seconds took) {
  const double sample = static_cast<double>(came_ - piece.came_before) / std::max(took.count(), 1e-6);
  const double weight = std::clamp(took / kTells, kTellsMin, 1.0);
  rate_ = rate_ == 0 ? sample : rate_ + weight * (sample - rate_);
}

void ReadWindow::note_shortest(Seconds took, Deadline now) {
  if (shortest_.count() > 0 && took > shortest_ && now < shortest_at_ + kShortestKept) return;
  shortest_ = took;
  shortest_at_ = now;
}

void ReadWindow::came(const Piece& piece, Deadline now) {
  const Seconds took = now - piece.asked;
  on_wire_ -= piece.length;
  came_ += piece.length;
  last_ = now;
  note_rate(piece, took);
  note_shortest(took, now);
  const Seconds waited = took - shortest_;
  if (waited <= kQueue && 2 * piece.beside >= window_) window_ += piece.length;
  if (waited > 2 * kQueue) window_ = std::min(window_, held_in(shortest_ + kQueue));
  window_ = std::min({window_, kBytesMax, std::max(held_in(kOnWireMax), 2 * kPieceStart)});
  window_ = std::max(window_, 2 * std::min(kPieceMin, std::max(kPieceStart, held_in(kPieceTimeMax))));
}

}  // namespace weft
