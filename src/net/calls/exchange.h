// Exchanges over transports that are given, such as twins.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "weft/exchange.h"

namespace weft::net {

using MakeTransport = std::function<Result<std::unique_ptr<Transport>>(Transport::Receiver receiver)>;

// As Exchange::open, over the transport that `make` makes, and after it those that `further` make.
Result<std::unique_ptr<Exchange>> open_exchange(const ExchangeOptions& options, const MakeTransport& make,
                                                const std::vector<MakeTransport>& further = {});

}  // namespace weft::net
