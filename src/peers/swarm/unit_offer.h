// The answer to a Want: an offer with the bytes of its unit.
#pragma once

#include <cstdint>

#include "blobs/local_bytes.h"
#include "peers/swarm/version_units.h"
#include "weft/cluster/exchange.h"
#include "weft/result.h"

namespace weft {

// Errc::not_found: this node has lost bytes of the unit. Errc::busy: too many copies are in windows. Other errors are
// those of the disk.
Result<PeerReply> offer_of(const VersionUnits& version, std::uint32_t unit, LocalBytes& bytes);
PeerReply offer_of_nothing();

}  // namespace weft
