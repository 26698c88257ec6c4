// The messages and handshakes that a node refuses: counts them by reason, and logs those that no honest node causes, at
// a bounded rate and with the address of the sender. Any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>

#include "base/log.h"
#include "weft/cluster/exchange.h"

namespace weft::net {

class Refusals {
 public:
  explicit Refusals(AddressText address_text) : address_text_(std::move(address_text)) {}

  // `sender`: the other end of the connection, if it is known.
  void count(PeerRefusal why, std::span<const std::byte> sender = {});
  std::string text_of(std::span<const std::byte> address) const;  // "an unknown address" if it is empty
  void add_to(ExchangeFigures& figures) const;

 private:
  const AddressText address_text_;
  std::array<std::atomic<std::uint64_t>, kPeerRefusalNames.size()> counts_{};
  RareLines lines_;
};

}  // namespace weft::net
