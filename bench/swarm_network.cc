#include "swarm_network.h"

#include <algorithm>

namespace weft::sim {

Network::Network(std::uint32_t hosts, const NetworkOptions& options)
    : options_(options), up_(hosts, Link{options.bits_per_second}), down_(up_) {
  const std::uint64_t hosts_in_rack = (hosts + options.racks - 1) / options.racks;
  core_.assign(options.racks, Link{options.bits_per_second * hosts_in_rack / options.core_divisor});
}

void Network::slow_down(Host host, std::uint32_t divisor) {
  up_[host].bits_per_second = down_[host].bits_per_second = options_.bits_per_second / divisor;
}

// Returns when the last byte has passed the link.
Nanoseconds Network::pass(Link& link, std::uint64_t bytes) const {
  const auto time = static_cast<Nanoseconds>(bytes * 8'000'000'000 / link.bits_per_second);
  link.busy_until = std::max(link.busy_until, now_) + time;
  link.bytes += bytes;
  return link.busy_until;
}

void Network::push(Nanoseconds time, Host host, std::uint32_t kind, std::uint64_t what) {
  events_.push({time, number_++, host, kind, what});
}

void Network::at(Nanoseconds time, Host host, std::uint32_t kind, std::uint64_t what) {
  push(std::max(time, now_), host, kind, what);
}

void Network::send(Host from, Host to, std::uint64_t bytes, bool handled, std::uint32_t kind, std::uint64_t what) {
  const std::uint64_t packet = packets_.take();
  packets_[packet] = {{0, 0, to, kind, what}, bytes, from, handled};
  const bool crosses = rack(from) != rack(to);
  push(pass(up_[from], bytes) + options_.delay, to, crosses ? kAtCore : kAtDownlink, packet);
}

// The last link of a packet: the place in its queue is taken when the packet gets there.
void Network::arrive(std::uint64_t number) {
  const Packet& packet = packets_[number];
  const Nanoseconds handled = packet.handled ? options_.handling : 0;
  push(pass(down_[packet.event.host], packet.bytes) + handled, packet.event.host, packet.event.kind, packet.event.what);
  packets_.give_back(number);
}

bool Network::next(Event& event) {
  while (!events_.empty()) {
    event = events_.top();
    events_.pop();
    now_ = event.at;
    if (event.kind == kAtCore) {
      const Packet& packet = packets_[event.what];
      core_bytes_ += packet.bytes;
      push(pass(core_[rack(packet.from)], packet.bytes), event.host, kAtDownlink, event.what);
    } else if (event.kind == kAtDownlink) {
      arrive(event.what);
    } else {
      return true;
    }
  }
  return false;
}

}  // namespace weft::sim
