// Events of the simulator of swarms, in the order of their times. Events of one time come in the order in which they
// were added.
//
// A hierarchical timing wheel (G. Varghese, A. Lauck, SOSP 1987): level n has a slot for each value of byte n of a
// time. An event is at the level of the highest byte in which its time differs from the present time, so it moves at
// most once a level. A heap of the 300,000 events of 10,000 nodes compares an event at 18 levels, each in another cache
// line.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace weft::sim {

using Nanoseconds = std::int64_t;
using Host = std::uint32_t;

// At a time, something reaches a host. `kind` and `what` are the simulator's, the rest is the network's.
struct Event {
  Nanoseconds at = 0;  // not negative
  std::uint64_t what = 0;
  Host host = 0, from = 0;
  std::uint32_t bytes = 0;
  std::uint16_t kind = 0;
  std::uint8_t hop = 0;
  bool handled = false;
};

class EventQueue {
 public:
  bool empty() const { return size_ == 0; }

  // The event is not before the last one that pop() returned.
  void push(const Event& event) {
    put(event);
    ++size_;
  }

  // Takes the first event. There is one.
  Event pop() {
    for (;;) {
      const auto [level, slot] = first();
      Slot& events = slots_[level][slot];
      if (level != 0) {
        move_down(level, slot);
        continue;
      }
      const Event event = events[taken_++];  // all events of this slot have one time
      if (taken_ == events.size()) {
        events.clear();
        taken_ = 0;
        mark(level, slot, false);
      }
      now_ = static_cast<std::uint64_t>(event.at);
      --size_;
      return event;
    }
  }

 private:
  static constexpr unsigned kByte = 8, kLevels = 8;
  static constexpr std::size_t kSlots = 1U << kByte, kWordBits = 64;
  static constexpr std::size_t kKept = 256;  // events; a slot that had room for more gives its memory back
  using Slot = std::vector<Event>;

  static std::size_t byte_of(std::uint64_t time, std::size_t level) { return (time >> (kByte * level)) % kSlots; }

  void put(const Event& event) {
    const auto at = static_cast<std::uint64_t>(event.at);
    const std::uint64_t differs = at ^ now_;
    const std::size_t level = differs == 0 ? 0 : static_cast<std::size_t>(std::bit_width(differs) - 1) / kByte;
    const std::size_t slot = byte_of(at, level);
    slots_[level][slot].push_back(event);
    mark(level, slot, true);
  }

  void mark(std::size_t level, std::size_t slot, bool used) {
    std::uint64_t& word = used_[level][slot / kWordBits];
    const std::uint64_t bit = std::uint64_t{1} << (slot % kWordBits);
    word = used ? word | bit : word & ~bit;
  }

  // Returns the level and the slot of the first event. Times of a higher level differ from the present time in a higher
  // byte, so they are later.
  std::pair<std::size_t, std::size_t> first() const {
    for (std::size_t level = 0;; ++level)
      for (std::size_t word = 0; word < used_[level].size(); ++word)
        if (const std::uint64_t bits = used_[level][word]; bits != 0)
          return {level, word * kWordBits + static_cast<std::size_t>(std::countr_zero(bits))};
  }

  // Moves the present time to the start of a slot, and the events of the slot to lower levels, in their order.
  void move_down(std::size_t level, std::size_t slot) {
    Slot moving = std::move(slots_[level][slot]);
    slots_[level][slot] = Slot();
    mark(level, slot, false);
    const std::uint64_t below = (std::uint64_t{1} << (kByte * level)) - 1;
    now_ = static_cast<std::uint64_t>(moving.front().at) & ~below;
    for (const Event& event : moving) put(event);
    if (moving.capacity() > kKept) return;
    moving.clear();
    slots_[level][slot] = std::move(moving);
  }

  std::array<std::array<Slot, kSlots>, kLevels> slots_;
  std::array<std::array<std::uint64_t, kSlots / kWordBits>, kLevels> used_{};
  std::uint64_t now_ = 0;  // no event is earlier
  std::size_t taken_ = 0;  // events of the first slot of level 0 that pop() has returned
  std::size_t size_ = 0;
};

}  // namespace weft::sim
