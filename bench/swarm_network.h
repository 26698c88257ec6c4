// A network in virtual time, for the simulator of swarms: each host has an uplink and a downlink, and racks are joined
// by a core. Each is a queue in order of arrival: a message waits behind the bytes that are queued on the same link, as
// behind tc-tbf or in one TCP connection. Deterministic: integers only, and events at one time in the order of their
// making.
#pragma once

#include <cstdint>
#include <queue>
#include <vector>

namespace weft::sim {

using Nanoseconds = std::int64_t;
using Host = std::uint32_t;

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

// An event: at a time, something reaches a host. `what` is the simulator's.
struct Event {
  Nanoseconds at = 0;
  std::uint64_t number = 0;
  Host host = 0;
  std::uint32_t kind = 0;
  std::uint64_t what = 0;
  bool operator>(const Event& other) const { return at != other.at ? at > other.at : number > other.number; }
};

class Network {
 public:
  Network(std::uint32_t hosts, const NetworkOptions& options);

  void slow_down(Host host, std::uint32_t divisor);  // its links, in both directions
  std::uint32_t rack(Host host) const { return host % options_.racks; }

  // Sends bytes; the event takes place at `to` when the last of them is there and handled. `handled` false: the bytes
  // of a one-sided read, which no thread handles.
  void send(Host from, Host to, std::uint64_t bytes, bool handled, std::uint32_t kind, std::uint64_t what);
  void at(Nanoseconds time, Host host, std::uint32_t kind, std::uint64_t what);  // without the network
  // Moves the time on to the simulator's next event. False: no event is left.
  bool next(Event& event);

  Nanoseconds now() const { return now_; }
  std::uint64_t sent(Host host) const { return up_[host].bytes; }
  std::uint64_t core_bytes() const { return core_bytes_; }
  std::uint64_t events() const { return number_; }

 private:
  struct Link {
    std::uint64_t bits_per_second = 0;
    Nanoseconds busy_until = 0;
    std::uint64_t bytes = 0;
  };
  struct Packet {
    Event event;
    std::uint64_t bytes = 0;
    Host from = 0;
    bool handled = false;
  };
  static constexpr std::uint32_t kAtCore = 0xFFFF'FFFE, kAtDownlink = 0xFFFF'FFFF;

  Nanoseconds pass(Link& link, std::uint64_t bytes) const;
  void push(Nanoseconds time, Host host, std::uint32_t kind, std::uint64_t what);
  void arrive(std::uint64_t packet);

  const NetworkOptions options_;
  std::vector<Link> up_, down_;
  std::vector<Link> core_;  // by the rack that sends
  Pool<Packet> packets_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  Nanoseconds now_ = 0;
  std::uint64_t number_ = 0;
  std::uint64_t core_bytes_ = 0;
};

}  // namespace weft::sim
