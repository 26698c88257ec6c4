// A network in virtual time, for the simulator of swarms: each host has an uplink and a downlink, and racks are joined
// by a core. Each is a queue in order of arrival: a message waits behind the bytes that are queued on the same link, as
// behind tc-tbf or in one TCP connection. Deterministic: integers only, and events at one time in the order of their
// making (swarm_events.h).
#pragma once

#include <cstdint>
#include <vector>

#include "swarm_events.h"

namespace weft::sim {

struct NetworkOptions {
  std::uint64_t bits_per_second = 10'000'000'000;
  Nanoseconds delay = 50'000;      // of each message, one way
  Nanoseconds handling = 150'000;  // of each message at its receiver
  std::uint32_t racks = 1;         // hosts are spread over them in turn
  std::uint32_t core_divisor = 1;  // the core moves the bytes of all hosts of a rack, divided by this
};

// Objects by number. A number that was given back is used again.
template <class T>
class Pool {
 public:
  std::uint64_t take() {
    if (free_.empty()) {
      free_.push_back(objects_.size());
      objects_.emplace_back();
    }
    const std::uint64_t number = free_.back();
    free_.pop_back();
    return number;
  }
  void give_back(std::uint64_t number) { free_.push_back(number); }
  T& operator[](std::uint64_t number) { return objects_[number]; }

 private:
  std::vector<T> objects_;
  std::vector<std::uint64_t> free_;
};

class Network {
 public:
  Network(std::uint32_t hosts, const NetworkOptions& options);

  void slow_down(Host host, std::uint32_t divisor);  // its links, in both directions
  std::uint32_t rack(Host host) const { return host % options_.racks; }

  // Sends bytes; the event takes place at `to` when the last of them is there and handled. `handled` false: the bytes
  // of a one-sided read, which no thread handles.
  void send(Host from, Host to, std::uint64_t bytes, bool handled, std::uint16_t kind, std::uint64_t what);
  void at(Nanoseconds time, Host host, std::uint16_t kind, std::uint64_t what);  // without the network
  // Moves the time on to the simulator's next event. False: no event is left.
  bool next(Event& event);

  Nanoseconds now() const { return now_; }
  std::uint64_t sent(Host host) const { return up_[host].bytes; }
  std::uint64_t core_bytes() const { return core_bytes_; }
  std::uint64_t events() const { return events_made_; }

 private:
  struct Link {
    std::uint64_t bits_per_second = 0;
    Nanoseconds busy_until = 0;
    std::uint64_t bytes = 0;
  };
  // The place of an event: the core of the racks, the downlink of its host, or the host itself.
  enum Hop : std::uint8_t { kHost, kDownlink, kCore };

  Nanoseconds pass(Link& link, std::uint64_t bytes) const;
  void push(Event event, Nanoseconds at, Hop hop);

  const NetworkOptions options_;
  std::vector<Link> up_, down_;
  std::vector<Link> core_;  // by the rack that sends
  EventQueue events_;
  Nanoseconds now_ = 0;
  std::uint64_t events_made_ = 0;
  std::uint64_t core_bytes_ = 0;
};

}  // namespace weft::sim
