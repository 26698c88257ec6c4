// The check of an address for TCP, which others speak. Not in a static program: the lookup of a host needs the modules
// of the name service.
#pragma once

#include <cstdint>
#include <string>

#include "weft/result.h"

namespace weft {

// Checks that a program could listen at this address over TCP: binds a socket there, and closes it. Port 0: any port.
// Errc::invalid: the host has no address, or no interface of this machine has it. Errc::busy: another program has the
// port.
Status check_own_address(const std::string& host, std::uint16_t port);

}  // namespace weft
