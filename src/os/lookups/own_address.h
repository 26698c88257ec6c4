// Addresses of this machine for TCP: the check of one, and the one that other machines reach. Not in a static program:
// the lookup of a host needs the modules of the name service.
#pragma once

#include <cstdint>
#include <string>

#include "weft/result.h"

namespace weft {

// Checks that a program could listen at this address over TCP: binds a socket there, and closes it. Port 0: any port.
// Errc::invalid: the host has no address, or no interface of this machine has it. Errc::busy: another program has the
// port.
Status check_own_address(const std::string& host, std::uint16_t port);

// Returns the address, in digits, of the interface by which this machine reaches a host. Sends nothing to the host.
// Errc::invalid: the host has no address. Errc::unreachable: no interface leads to it.
Result<std::string> own_address_towards(const std::string& host, std::uint16_t port);

// Returns the address, in digits, that other machines most likely reach: that of the default route, else the only one
// beside the loopback. Errc::not_found: there is no such one.
Result<std::string> own_main_address();

}  // namespace weft
