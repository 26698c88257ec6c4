// The swarms (peers/swarm/peer_swarms.h) as the answers and the source of this room know them.
#pragma once

#include <span>
#include <string_view>

#include "peers/swarm_messages.h"
#include "weft/bytes/source.h"
#include "weft/cluster/exchange.h"
#include "weft/content.h"

namespace weft {

// Any thread. Calls are short.
class SwarmServer {
 public:
  virtual ~SwarmServer() = default;
  // As PeerServer.
  virtual void receive(std::string_view node, Join join, PendingReply reply) = 0;
  virtual void receive(std::string_view node, Want want, PendingReply reply) = 0;
  virtual void unwanted(std::string_view node) = 0;
  // As BlobSource.
  virtual void arrived(const Digest& manifest, std::span<const ChunkRun> runs) = 0;
  virtual void evicted() = 0;
};

}  // namespace weft
