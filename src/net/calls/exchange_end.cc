#include "net/calls/exchange_end.h"

#include <utility>

namespace weft::net {

Status End::listen(const MakeTransport& make) {
  WEFT_TRY(transport_, make([this](std::span<const std::byte> message) { receive(message); }));
  return {};
}

void End::begin(const ExchangeOptions& options, const Secret& key, std::shared_ptr<LandingPool> landings) {
  const Identity identity{key, options.node, transport_->address()};
  outgoing_.emplace(*transport_, identity, std::move(landings));
  incoming_.emplace(*transport_, identity, options.server, options.threads);
  open_.store(true, std::memory_order_release);
}

void End::close() {
  if (!open_.exchange(false)) return;
  incoming_->close();
  outgoing_->close();
}

void End::receive(std::span<const std::byte> message) {
  if (!open_.load(std::memory_order_acquire)) return;
  const auto frame = parse_frame(message);
  if (!frame.ok() || (!outgoing_->receive(*frame) && !incoming_->receive(*frame))) ++refused_;
}

void End::add_to(ExchangeFigures& figures) const {
  const auto passed_over = transport_->passed_over();
  figures.passed_over.insert(figures.passed_over.end(), passed_over.begin(), passed_over.end());
  figures.refused += refused_;
  figures.transport += transport_->counters();
  outgoing_->add_to(figures);
  incoming_->add_to(figures);
}

}  // namespace weft::net
