// Keeps what the kernel remembers true: a reply that says "keep this until told otherwise" must reach the kernel before
// the notification that takes it back, or it would be believed for ever.
//
// A reply notes the time before it looks at the tree, and asks for a Pass before it is sent. The notifier, once it
// knows of commits and before it tells of them, advances the time and waits for the passes that are out. So a reply
// with a pass either shows those commits or was sent before their notification.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace weft {

class Freshness {
 public:
  using Time = std::uint64_t;  // 0: nothing may be kept

  // Held while a reply is sent, and not longer.
  class Pass {
   public:
    Pass() = default;
    ~Pass();
    Pass(Pass&& other) noexcept : out_(other.out_) { other.out_ = nullptr; }
    Pass& operator=(Pass&&) = delete;
    // May the kernel keep what was looked at, until it is told?
    bool keeps() const { return out_ != nullptr; }

   private:
    friend class Freshness;
    explicit Pass(std::atomic<std::uint64_t>* out) : out_(out) {}
    std::atomic<std::uint64_t>* out_ = nullptr;
  };

  // Any thread.
  Time now() const { return time_.load(); }
  Pass pass(Time looked);

  // The notifier's thread. Both return when the passes that were out are back. At first, and after stop(), nothing may
  // be kept.
  void advance() { change(last_ + 1); }
  void stop() { change(0); }

 private:
  void change(Time to);

  Time last_ = 0;  // of the notifier's thread: the last that was not 0
  std::atomic<Time> time_{0};
  std::array<std::atomic<std::uint64_t>, 2> out_{};  // passes, by the parity of their time
};

}  // namespace weft
