// One transport of an exchange, with the calls and the sessions over it.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>

#include "net/calls/exchange.h"
#include "net/calls/incoming.h"
#include "net/calls/outgoing.h"

namespace weft::net {

class End {
 public:
  ~End() { close(); }

  // Makes the transport. Messages that arrive before begin() are dropped.
  Status listen(const MakeTransport& make);
  // Once, after listen(). `landings` belong to this transport, or to one that ends after it.
  void begin(const ExchangeOptions& options, const Secret& key, std::shared_ptr<LandingPool> landings);
  void close();  // waits for answers in work; afterwards messages are dropped

  Transport& transport() const { return *transport_; }
  Outgoing& outgoing() { return *outgoing_; }
  void add_to(ExchangeFigures& figures) const;

 private:
  void receive(std::span<const std::byte> message);

  std::atomic<bool> open_{false};
  std::atomic<std::uint64_t> refused_{0};
  std::optional<Outgoing> outgoing_;
  std::optional<Incoming> incoming_;
  std::unique_ptr<Transport> transport_;  // ends first: its thread calls receive()
};

}  // namespace weft::net
