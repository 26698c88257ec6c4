#include "cli/shared/progress_bar.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/text.h"

namespace weft {
namespace {

constexpr auto kRedraw = std::chrono::milliseconds(100);
constexpr std::size_t kBarMin = 10;
constexpr std::size_t kBarMax = 40;
constexpr std::string_view kClearLine = "\r\x1b[K";

std::string time_left(const ProgressState& state) {
  if (state.done == 0 || state.done >= state.total || state.seconds < 1) return "";
  double left = state.seconds * static_cast<double>(state.total - state.done) / static_cast<double>(state.done);
  auto seconds = static_cast<std::uint64_t>(std::min(left, 1e9));
  if (seconds >= 3600) return fmt::format("{}:{:02}:{:02} left", seconds / 3600, seconds / 60 % 60, seconds % 60);
  return fmt::format("{}:{:02} left", seconds / 60, seconds % 60);
}

std::string rate(const ProgressState& state) {
  if (state.seconds < 0.2) return "";
  return human_bytes(static_cast<std::uint64_t>(static_cast<double>(state.done) / state.seconds)) + "/s";
}

// Returns "45% [====      ]" with a bar of `width` cells.
std::string bar(const ProgressState& state, std::size_t width) {
  double share = std::min(1.0, static_cast<double>(state.done) / static_cast<double>(state.total));
  auto full = static_cast<std::size_t>(share * static_cast<double>(width));
  return fmt::format("{:3}% [{}{}]", static_cast<int>(share * 100), std::string(full, '='),
                     std::string(width - full, ' '));
}

std::string figures(const ProgressState& state) {
  std::string text = human_bytes(state.done);
  if (state.total > 0) text += " of " + human_bytes(state.total);
  for (const std::string& more : {rate(state), state.total > 0 ? time_left(state) : std::string()})
    if (!more.empty()) text += "  " + more;
  return text;
}

// Returns the first `columns` characters of UTF-8 text.
std::string cut(std::string_view text, std::size_t columns) {
  std::size_t end = 0;
  for (std::size_t shown = 0; end < text.size(); ++end) {
    bool starts_character = (static_cast<unsigned char>(text[end]) & 0xc0U) != 0x80U;
    if (starts_character && shown++ == columns) break;
  }
  return std::string(text.substr(0, end));
}

}  // namespace

std::string progress_line(const ProgressState& state, unsigned columns) {
  std::size_t room = columns > 0 ? columns - 1 : 0;  // the last column would wrap on some terminals
  std::string text = figures(state);
  constexpr std::size_t kBarFrame = 9;  // "100% [" and "]  "
  if (state.total > 0 && text.size() + kBarFrame + kBarMin <= room) {
    std::size_t width = std::min(kBarMax, (room - text.size() - kBarFrame) / 2);
    text = bar(state, std::max(width, kBarMin)) + "  " + text;
  }
  if (!state.phase.empty() && text.size() + 2 < room)
    text += "  " + cut(printable(state.phase), room - text.size() - 2);
  return cut(text, room);
}

ProgressBar::~ProgressBar() {
  std::lock_guard lock(mutex_);
  if (drawn_) *out_ << kClearLine << std::flush;
}

void ProgressBar::total(std::uint64_t bytes) {
  total_.store(bytes, std::memory_order_relaxed);
  if (due()) draw();
}

void ProgressBar::advance(std::uint64_t bytes) {
  done_.fetch_add(bytes, std::memory_order_relaxed);
  if (due()) draw();
}

void ProgressBar::phase(std::string_view what) {
  if (out_ == nullptr) return;
  {
    std::lock_guard lock(mutex_);
    phase_ = what;
  }
  if (due()) draw();
}

// True for one thread in each kRedraw.
bool ProgressBar::due() {
  if (out_ == nullptr) return false;
  Clock::rep now = Clock::now().time_since_epoch().count();
  Clock::rep next = next_draw_.load(std::memory_order_relaxed);
  return now >= next && next_draw_.compare_exchange_strong(next, now + Clock::duration(kRedraw).count());
}

void ProgressBar::draw() {
  std::lock_guard lock(mutex_);
  if (!drawn_ || done_ == 0) start_ = Clock::now();
  drawn_ = true;
  ProgressState state{phase_, done_, total_, std::chrono::duration<double>(Clock::now() - start_).count()};
  *out_ << kClearLine << progress_line(state, columns_()) << std::flush;
}

}  // namespace weft
