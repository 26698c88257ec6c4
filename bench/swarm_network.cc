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

void Network::push(Event event, Nanoseconds at, Hop hop) {
  event.at = at;
  event.hop = hop;
  events_.push(event);
  ++events_made_;
}

void Network::at(Nanoseconds time, Host host, std::uint16_t kind, std::uint64_t what) {
  push({.what = what, .host = host, .kind = kind}, std::max(time, now_), kHost);
}

void Network::send(Host from, Host to, std::uint64_t bytes, bool handled, std::uint16_t kind, std::uint64_t what) {
  const Event packet{.what = what,
                     .host = to,
                     .from = from,
                     .bytes = static_cast<std::uint32_t>(bytes),
                     .kind = kind,
                     .handled = handled};
  push(packet, pass(up_[from], bytes) + options_.delay, rack(from) == rack(to) ? kDownlink : kCore);
}

// A packet takes its place in the queue of a link when it gets there.
bool Network::next(Event& event) {
  while (!events_.empty()) {
    event = events_.pop();
    now_ = event.at;
    if (event.hop == kHost) return true;
    if (event.hop == kCore) {
      core_bytes_ += event.bytes;
      push(event, pass(core_[rack(event.from)], event.bytes), kDownlink);
    } else {
      const Nanoseconds handled = event.handled ? options_.handling : 0;
      push(event, pass(down_[event.host], event.bytes) + handled, kHost);
    }
  }
  return false;
}

}  // namespace weft::sim
