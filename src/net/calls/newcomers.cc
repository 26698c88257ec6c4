#include "net/calls/newcomers.h"

#include <algorithm>

#include "base/limits.h"

namespace weft::net {

bool Newcomers::admit(const EndpointAddress& address, bool proved, Clock::time_point now) {
  if (known_.contains(address)) return true;
  std::erase_if(doubts_, [now](const auto& one) { return one.second.until <= now; });
  const std::size_t doubts_max = proved ? limits::kPeerNewcomersMax : limits::kPeerStrangersMax;
  if (!doubts_.contains(address) && count(proved) >= doubts_max) return false;
  Doubt& doubt = doubts_[address];
  doubt = {doubt.proved || proved, now + kInDoubt};
  return true;
}

void Newcomers::authenticated(const EndpointAddress& address, Clock::time_point now) {
  doubts_.erase(address);
  known_[address] = now;
  if (known_.size() <= limits::kPeerSessionsMax) return;
  known_.erase(std::ranges::min_element(known_, {}, [](const auto& one) { return one.second; }));
}

std::size_t Newcomers::count(bool proved) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(doubts_, [proved](const auto& one) { return one.second.proved == proved; }));
}

}  // namespace weft::net
