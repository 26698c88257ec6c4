#include "net/calls/open_windows.h"

#include <fmt/core.h>

#include <numeric>
#include <utility>

#include "base/limits.h"

namespace weft::net {

Status OpenWindows::open(Transport& transport, std::unique_ptr<WindowMemory> memory) {
  auto window = transport.open_window(memory->bytes());
  if (!window.ok() && memory->is_file()) {
    WEFT_TRY(memory, WindowMemory::of_bytes(memory->bytes()));
    window = transport.open_window(memory->bytes());
  }
  if (!window.ok()) return std::move(window).error();
  bytes_ += memory->bytes().size();
  windows_.push_back(std::move(*window));
  memory_.push_back(std::move(memory));
  return {};
}

std::vector<RemoteWindow> OpenWindows::remote() const {
  std::vector<RemoteWindow> out;
  for (const auto& window : windows_) out.push_back(window->remote());
  return out;
}

void OpenWindows::withdraw() {
  windows_.clear();
  for (const auto& memory : memory_) memory->withdraw();
  memory_.clear();
}

Result<OpenWindows> WindowBudget::open(std::vector<std::unique_ptr<WindowMemory>> memory) {
  const std::uint64_t bytes =
      std::accumulate(memory.begin(), memory.end(), std::uint64_t{0},
                      [](std::uint64_t sum, const auto& each) { return sum + each->bytes().size(); });
  if (bytes > kAnswerBytesMax + kHeadBytesMax)
    return Error{Errc::internal, fmt::format("an answer with windows of {} bytes", bytes)};
  if (!reserve(memory.size(), bytes)) return Error{Errc::busy, "this node has too many windows open"};
  OpenWindows windows;
  for (auto& each : memory) {
    Status opened = windows.open(transport_, std::move(each));
    if (opened.ok()) continue;
    uncount(memory.size(), bytes);
    return std::move(opened).error();
  }
  return windows;
}

bool WindowBudget::reserve(std::size_t windows, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (windows_ + windows > limits::kWindowsMax || bytes_ + bytes > limits::kWindowBytesMax) return false;
  windows_ += windows;
  bytes_ += bytes;
  return true;
}

void WindowBudget::uncount(std::size_t windows, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  windows_ -= windows;
  bytes_ -= bytes;
}

// Closes windows, and only then subtracts them: a window counts while it can be read.
void WindowBudget::release(OpenWindows windows) {
  const std::size_t count = windows.count();
  const std::uint64_t bytes = windows.bytes();
  { const OpenWindows closed = std::move(windows); }
  uncount(count, bytes);
}

void WindowBudget::withdraw(OpenWindows windows) {
  const std::size_t count = windows.count();
  windows.withdraw();
  uncount(count, windows.bytes());
}

void WindowBudget::add_to(ExchangeFigures& figures) const {
  const std::lock_guard lock(mutex_);
  figures.windows += windows_;
  figures.window_bytes += bytes_;
}

}  // namespace weft::net
