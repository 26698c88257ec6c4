#include "peers/swarm/exchange_calls.h"

#include <fmt/core.h>

namespace weft {

void ExchangeCalls::begin(const std::string& node, std::vector<std::byte> request, std::chrono::milliseconds patience,
                          CallDone done) {
  const auto address = address_(node);
  if (!address) return done(Error{Errc::unreachable, fmt::format("peer {}: is no member any more", node)});
  exchange_.begin(*address, request, patience, std::move(done));
}

}  // namespace weft
