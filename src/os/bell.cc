#include "os/bell.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <thread>

namespace weft {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kBellPoll{1};
constexpr std::chrono::milliseconds kLongest{60'000};  // the longest single poll(2)

}  // namespace

Bell::Bell() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) return;
  hears_ = Fd(ends[0]);
  rings_ = Fd(ends[1]);
}

// A full pipe needs no further byte: its reader is woken anyway.
void Bell::ring() const {
  const char one = 1;
  if (rings_.valid()) static_cast<void>(!::write(rings_.get(), &one, sizeof one));
}

void Bell::wait(Clock::time_point until) const {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
  if (!hears_.valid()) return std::this_thread::sleep_for(std::clamp(left, 0 * kBellPoll, kBellPoll));
  pollfd event{hears_.get(), POLLIN, 0};
  if (::poll(&event, 1, static_cast<int>(std::clamp(left, 0 * kBellPoll, kLongest).count())) > 0) clear();
}

void Bell::clear() const {
  std::array<char, 64> rung{};
  while (::read(hears_.get(), rung.data(), rung.size()) == static_cast<ssize_t>(rung.size())) {
  }
}

}  // namespace weft
