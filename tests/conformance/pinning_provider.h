// libfabric's net provider with the demands of hardware: it requires every mr_mode bit, and fails calls that ignore
// one. Local memory must be registered for its use. The provider chooses the keys, which are known once memory is bound
// to the endpoint and enabled. Windows are read by address. Pages must be present; pages of a file are refused.
#pragma once

#include <memory>

#include "weft/cluster/transport.h"

namespace weft::conformance {

// Opens a transport that reaches endpoints of the same process only.
Result<std::unique_ptr<Transport>> open_pinning_transport(Transport::Receiver receiver);

// Returns how often any endpoint has registered memory for reads.
int registrations_for_reads();
// Returns how many endpoints were closed while memory was bound to them.
int endpoints_closed_too_early();

}  // namespace weft::conformance
