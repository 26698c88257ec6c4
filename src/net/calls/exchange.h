// Opens exchanges over given transports, such as in-memory twins.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "weft/cluster/exchange.h"

namespace weft::net {

using MakeTransport = std::function<Result<std::unique_ptr<Transport>>(Transport::Receiver receiver)>;

// As Exchange::open, with an end over the transport that `make` makes, then one for each of `further`.
Result<std::unique_ptr<Exchange>> open_exchange(const ExchangeOptions& options, const MakeTransport& make,
                                                const std::vector<MakeTransport>& further = {});

}  // namespace weft::net
