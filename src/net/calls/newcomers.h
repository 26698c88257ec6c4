// Who may be answered that said hello. To answer is to connect to the address that the hello names, and where nobody
// is that lasts for minutes: only so many addresses are in doubt at once. One thread at a time.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>

#include "weft/transport.h"

namespace weft::net {

class Newcomers {
 public:
  using Clock = std::chrono::steady_clock;
  // Longer than Linux tries to connect.
  static constexpr std::chrono::seconds kInDoubt{150};

  // Whether a hello that names this address may be answered. `proved`: it was made with the cluster's key. Of others
  // few are answered, so that a node with another key is told so.
  bool admit(const EndpointAddress& address, bool proved, Clock::time_point now = Clock::now());
  // Somebody who holds the key has answered from there: it is no newcomer any more, whatever others fill the room with.
  void settled(const EndpointAddress& address, Clock::time_point now = Clock::now());

 private:
  struct Doubt {
    bool proved = false;
    Clock::time_point until;
  };
  std::size_t count(bool proved) const;

  std::map<EndpointAddress, Doubt> doubts_;
  std::map<EndpointAddress, Clock::time_point> known_;  // since when
};

}  // namespace weft::net
