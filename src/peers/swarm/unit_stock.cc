#include "peers/swarm/unit_stock.h"

#include "peers/swarm/local_units.h"
#include "peers/swarm/unit_offer.h"
#include "peers/swarm_messages.h"

namespace weft {

std::vector<ChunkRun> LocalStock::runs(const VersionUnits& version) {
  return local_runs(version, bytes_);
}

Result<PeerReply> LocalStock::offer(const VersionUnits& version, std::uint32_t unit, bool names) {
  return names ? offer_with_token(version, unit, bytes_) : offer_of(version, unit, bytes_);
}

Result<PeerReply> OriginStock::offer(const VersionUnits& /*version*/, std::uint32_t unit, bool /*names*/) {
  PeerReply reply;
  reply.head = encode_offer({unit});
  return reply;
}

}  // namespace weft
