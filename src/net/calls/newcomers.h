// Limits the replies to hellos from unknown addresses. A reply connects to the address that the hello names, and if no
// host is there, that takes minutes. So the number of addresses in doubt is limited. One thread at a time.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>

#include "weft/cluster/transport.h"

namespace weft::net {

class Newcomers {
 public:
  using Clock = std::chrono::steady_clock;
  // Longer than Linux tries to connect.
  static constexpr std::chrono::seconds kInDoubt{150};

  // True if a hello that names this address may be answered. `proved`: it was made with the cluster's key. A few
  // unproved hellos are answered too, so that a node with another key gets an error.
  bool admit(const EndpointAddress& address, bool proved, Clock::time_point now = Clock::now());
  // Call when a holder of the key has confirmed from this address. Later hellos from this address are always admitted.
  void authenticated(const EndpointAddress& address, Clock::time_point now = Clock::now());

 private:
  struct Doubt {
    bool proved = false;
    Clock::time_point until;
  };
  std::size_t count(bool proved) const;

  std::map<EndpointAddress, Doubt> doubts_;
  std::map<EndpointAddress, Clock::time_point> known_;  // with the time of authenticated()
};

}  // namespace weft::net
