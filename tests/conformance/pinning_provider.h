// libfabric's net as a provider for hardware would have it: every mr_mode bit is asked for, and what does not honour it
// fails. Local memory has to be registered for what is done with it; keys are the provider's, and known once memory is
// bound to the endpoint and enabled; windows are read by address; pages have to be there; those of a file are refused.
#pragma once

#include <memory>

#include "weft/transport.h"

namespace weft::conformance {

// Endpoints of one process alone reach each other.
Result<std::unique_ptr<Transport>> open_pinning_transport(Transport::Receiver receiver);

// How often memory was registered for reads to land in, by all endpoints so far.
int registrations_for_reads();
// Those that memory was still bound to.
int endpoints_closed_too_early();

}  // namespace weft::conformance
