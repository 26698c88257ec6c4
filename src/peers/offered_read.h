// Reads runs of an offered unit (peers/offered_unit.h) from the answer that opens its bytes, and from no other node. Of
// a unit with a token, reads that.
#pragma once

#include <chrono>
#include <span>

#include "pace/pace_gate.h"
#include "peers/links.h"
#include "peers/offered_unit.h"
#include "peers/read_blocks.h"
#include "weft/bytes/source.h"
#include "weft/cluster/exchange.h"
#include "weft/deadline.h"
#include "weft/result.h"

namespace weft {

// A read ends when its node was silent for this time: another node can offer the unit again.
inline constexpr std::chrono::milliseconds kOfferSilenceMax = kSilenceMax / 2;

// All outlive the read.
struct OfferScene {
  Exchange& exchange;
  ReadBlocks& blocks;
  PeerLinks& links;
  PaceGate& gate;
};

// `aid.offered` is a PeerOffer. The runs are consecutive chunks of the unit. Errc::corrupt: the node gave another
// number of bytes. Errc::unreachable: the answer is dropped. Errc::timed_out: the node was silent for kOfferSilenceMax,
// or until the deadline. A read of the unit's last bytes drops the answer.
Result<SourceBytes> read_offered(const OfferScene& scene, std::span<const ChunkRun> runs, Deadline deadline,
                                 ReadAid& aid);

// Runs of a unit with a token have come from its sender: reads the token, so that the sender counts the unit as read,
// and after the unit's last chunk drops the answer. A sender whose token was not read may send the unit again.
void read_token(const OfferScene& scene, PeerOffer& offer, std::span<const ChunkRun> runs);

}  // namespace weft
