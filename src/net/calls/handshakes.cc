#include "net/calls/handshakes.h"

#include <algorithm>
#include <utility>

#include "base/limits.h"
#include "weft/deadline.h"

namespace weft::net {
namespace {

// How long a handshake may stay half open. A caller that holds the key gets more time, for a slow link.
constexpr std::chrono::milliseconds kHalfOpenFor{1'000};
constexpr std::chrono::milliseconds kProvedHalfOpenFor = kSilenceMax / 2;

std::size_t half_open_max(bool proved) {
  return proved ? limits::kPeerNewcomersMax : limits::kPeerHalfOpenMax;
}

}  // namespace

std::size_t Handshakes::count(bool proved) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(half_open_, [proved](const auto& one) { return one.second.half.proved == proved; }));
}

bool Handshakes::admits(const EndpointAddress& address, bool proved) {
  return (proved || count(false) < half_open_max(false)) && newcomers_.admit(address, proved);
}

std::optional<PeerId> Handshakes::add(std::uint64_t session, HalfOpen half, Clock::time_point now) {
  std::optional<PeerId> pushed_out;
  if (count(half.proved) >= half_open_max(half.proved)) {
    const auto is_older = [proved = half.proved](const auto& a, const auto& b) {
      if (a.second.half.proved != b.second.half.proved) return a.second.half.proved == proved;
      return a.second.until < b.second.until;
    };
    const auto oldest = std::ranges::min_element(half_open_, is_older);
    pushed_out = oldest->second.half.peer;
    half_open_.erase(oldest);
  }
  const auto until = now + (half.proved ? kProvedHalfOpenFor : kHalfOpenFor);
  half_open_.emplace(session, Timed{std::move(half), until});
  return pushed_out;
}

const HalfOpen* Handshakes::find(std::span<const std::byte> hello_tag) const {
  for (const auto& [session, timed] : half_open_)
    if (timed.half.proved && std::ranges::equal(timed.half.hello_tag, hello_tag)) return &timed.half;
  return nullptr;
}

std::optional<HalfOpen> Handshakes::take(std::uint64_t session) {
  auto found = half_open_.extract(session);
  if (found.empty()) return std::nullopt;
  return std::move(found.mapped().half);
}

Handshakes::Clock::time_point Handshakes::next_end() const {
  auto next = Clock::time_point::max();
  for (const auto& [session, timed] : half_open_) next = std::min(next, timed.until);
  return next;
}

std::vector<PeerId> Handshakes::end_due(Clock::time_point now) {
  std::vector<PeerId> ended;
  std::erase_if(half_open_, [&](const auto& one) {
    if (one.second.until > now) return false;
    ended.push_back(one.second.half.peer);
    return true;
  });
  return ended;
}

}  // namespace weft::net
