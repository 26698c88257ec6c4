// Reads runs of an offered unit (peers/offered_unit.h) from the answer that opens its bytes, and from no other node.
#pragma once

#include <span>

#include "peers/links.h"
#include "peers/read_blocks.h"
#include "weft/bytes/source.h"
#include "weft/cluster/exchange.h"
#include "weft/deadline.h"
#include "weft/result.h"

namespace weft {

// All outlive the read.
struct OfferScene {
  Exchange& exchange;
  ReadBlocks& blocks;
  PeerLinks& links;
};

// `aid.offered` is a PeerOffer. The runs are consecutive chunks of the unit. Errc::corrupt: the node gave another
// number of bytes. Errc::unreachable: the answer is dropped. Errc::timed_out: the node was silent for kSilenceMax / 2,
// or until the deadline. A read of the unit's last bytes drops the answer.
Result<SourceBytes> read_offered(const OfferScene& scene, std::span<const ChunkRun> runs, Deadline deadline,
                                 ReadAid& aid);

}  // namespace weft
