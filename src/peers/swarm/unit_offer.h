// The answer to a Want: an offer with the bytes of its unit, or with a token in their place.
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
// The answer to Want::names: a token in place of the bytes, which are all local. Errors as offer_of().
Result<PeerReply> offer_with_token(const VersionUnits& version, std::uint32_t unit, LocalBytes& bytes);
PeerReply offer_of_nothing();

}  // namespace weft
