#include "peers/read_window.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <deque>
#include <vector>

namespace weft::testing {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using Seconds = std::chrono::duration<double>;

constexpr double kMbit = 1e6 / 8;  // bytes per second

// A simulated link. It sends requests in order to some readers, which always want more, on its own clock.
class Link {
 public:
  Link(double rate, milliseconds delay, std::size_t readers = 1) : rate_(rate), delay_(delay), windows_(readers) {}

  void run(Deadline::duration time) {
    const Deadline end = now_ + time;
    for (;;) {
      for (std::size_t i = 0; i < windows_.size(); ++i)
        while (windows_[i].has_room(windows_[i].piece())) ask(i);
      if (flying_.front().there > end) break;
      const Flying one = flying_.front();
      flying_.pop_front();
      now_ = one.there;
      longest_ = std::max(longest_, now_ - one.piece.asked);
      windows_[one.reader].came(one.piece, now_);
      came_ += one.piece.length;
    }
    now_ = end;
  }
  // Returns the bytes that arrived since the last call, as a share of what the link could have sent.
  double use() {
    const Seconds time = now_ - since_;
    const double used = static_cast<double>(came_) / (time.count() * rate_);
    since_ = now_;
    came_ = 0;
    longest_ = {};
    return used;
  }
  void set_rate(double rate) { rate_ = rate; }
  void pass(Deadline::duration time) { now_ += time; }
  milliseconds longest() const { return duration_cast<milliseconds>(longest_); }  // time of a piece on the wire
  const ReadWindow& window(std::size_t reader = 0) const { return windows_[reader]; }
  ReadWindow& window_of(std::size_t reader) { return windows_[reader]; }
  Deadline now() const { return now_; }

 private:
  struct Flying {
    std::size_t reader = 0;
    ReadWindow::Piece piece;
    Deadline there;
  };
  void ask(std::size_t reader) {
    const auto piece = windows_[reader].ask(windows_[reader].piece(), now_);
    free_at_ = std::max(free_at_, now_ + delay_ / 2) +
               duration_cast<nanoseconds>(Seconds(static_cast<double>(piece.length) / rate_));
    flying_.push_back({reader, piece, free_at_ + delay_ / 2});
  }

  double rate_;
  milliseconds delay_;
  std::vector<ReadWindow> windows_;
  std::deque<Flying> flying_;
  Deadline now_ = Deadline(std::chrono::hours(100));
  Deadline free_at_ = now_;
  Deadline since_ = now_;
  Deadline::duration longest_{};
  std::size_t came_ = 0;
};

}  // namespace

TEST_CASE("the first pieces are small, whatever the link") {
  const ReadWindow window;
  CHECK(window.piece() == ReadWindow::kPieceStart);
  CHECK(window.window() == 2 * ReadWindow::kPieceStart);
}

TEST_CASE("a link is used nearly whole, and no piece is on the wire for more than a second") {
  for (const double mbit : {1.0, 5.0, 20.0, 100.0, 200.0, 1'000.0, 10'000.0, 25'000.0})
    for (const milliseconds delay : {milliseconds(0), milliseconds(2), milliseconds(50)}) {
      CAPTURE(mbit);
      CAPTURE(delay.count());
      // that would need more than kBytesMax in flight
      if (mbit * static_cast<double>(delay.count()) > 100'000) continue;
      Link link(mbit * kMbit, delay);
      link.run(milliseconds(5'000));
      link.use();
      link.run(milliseconds(5'000));
      const milliseconds longest = link.longest();
      CHECK(link.use() > 0.9);
      CHECK(longest < milliseconds(1'000));
    }
}

TEST_CASE("a piece is what a fast source moves in a millisecond, from 128 KiB to 1 MiB") {
  const auto piece_at = [](double mbit) {
    Link link(mbit * kMbit, milliseconds(1));
    link.run(milliseconds(3'000));
    return link.window().piece();
  };
  CHECK(piece_at(100) == 128U << 10U);
  CHECK(piece_at(800) == 128U << 10U);
  const std::size_t middle = piece_at(4'000);
  CHECK(middle > 400U << 10U);
  CHECK(middle < 600U << 10U);
  CHECK(piece_at(20'000) == 1U << 20U);
}

TEST_CASE("on a slow link a piece takes an eighth of a second, and two are on their way") {
  Link link(1 * kMbit, milliseconds(1));
  link.run(milliseconds(10'000));
  CHECK(link.window().piece() == ReadWindow::kPieceStart);
  CHECK(link.window().window() >= 2 * link.window().piece());
}

TEST_CASE("many readers of one slow link keep few bytes on the wire each") {
  for (const std::size_t readers : {4U, 16U, 80U}) {
    CAPTURE(readers);
    Link link(50 * kMbit, milliseconds(1), readers);
    link.run(milliseconds(30'000));
    link.use();
    link.run(milliseconds(10'000));
    const milliseconds longest = link.longest();
    CHECK(longest < milliseconds(1'500));
    CHECK(link.use() > 0.9);
  }
}

TEST_CASE("a link that becomes slow is noticed within the bytes that were on the wire") {
  Link link(1'000 * kMbit, milliseconds(1));
  link.run(milliseconds(2'000));
  CHECK(link.window().window() > 2U << 20U);
  link.set_rate(5 * kMbit);
  link.run(milliseconds(20'000));
  link.use();
  link.run(milliseconds(5'000));
  const milliseconds longest = link.longest();
  CHECK(longest < milliseconds(1'000));
  CHECK(link.use() > 0.9);
}

TEST_CASE("a burst that a buffer on the way takes at once does not open the window for good") {
  Link link(1e9, milliseconds(0));
  link.run(milliseconds(1));  // some hundred KiB, faster than the link is
  link.set_rate(1 * kMbit);
  link.run(milliseconds(20'000));
  link.use();
  link.run(milliseconds(5'000));
  const milliseconds longest = link.longest();
  CHECK(longest < milliseconds(1'000));
  CHECK(link.use() > 0.8);
}

TEST_CASE("after a pause the window of a peer starts again") {
  ReadWindow window;
  Deadline now = Deadline(std::chrono::hours(1));
  for (int i = 0; i < 200; ++i) {
    const auto piece = window.ask(window.piece(), now);
    window.came(piece, now += std::chrono::microseconds(100));
  }
  CHECK(window.window() > 1U << 20U);
  const auto later = window.ask(window.piece(), now + ReadWindow::kIdle + milliseconds(1));
  CHECK(window.window() == 2 * ReadWindow::kPieceStart);
  window.lost(later);
  CHECK(window.on_wire() == 0);
  CHECK(window.rate() == 0);
}

TEST_CASE("a piece that was lost makes room for another") {
  ReadWindow window;
  const Deadline now = Deadline(std::chrono::hours(1));
  const auto first = window.ask(window.piece(), now);
  const auto second = window.ask(window.piece(), now);
  CHECK_FALSE(window.has_room(window.piece()));
  window.lost(second);
  CHECK(window.has_room(window.piece()));
  window.lost(first);
  CHECK(window.has_room(ReadWindow::kBytesMax));  // no piece is on the wire
}

}  // namespace weft::testing
