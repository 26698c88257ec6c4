#include "net/calls/refusals.h"

#include <cstddef>

#include "base/text.h"

namespace weft::net {
namespace {

// True if only an intruder or a damaged message can be the reason. A node that has restarted, for example, gets
// messages of sessions that it no longer knows.
bool is_hostile(PeerRefusal why) {
  return why == PeerRefusal::malformed || why == PeerRefusal::not_authentic;
}

}  // namespace

void Refusals::count(PeerRefusal why, std::span<const std::byte> sender) {
  ++counts_.at(static_cast<std::size_t>(why));
  if (!is_hostile(why)) return;
  const std::string from = text_of(sender);
  const std::string host = from.substr(0, from.rfind(':'));  // all ports of a host are one subject
  if (lines_.due(host))
    log_warning("a message from {} is refused: {}", from, kPeerRefusalNames.at(static_cast<std::size_t>(why)));
}

std::string Refusals::text_of(std::span<const std::byte> address) const {
  return address.empty() || !address_text_ ? "an unknown address" : printable(address_text_(address));
}

void Refusals::add_to(ExchangeFigures& figures) const {
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    figures.refusals.at(i) += counts_[i];
    figures.refused += counts_[i];
  }
}

}  // namespace weft::net
