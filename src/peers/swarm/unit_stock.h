// A UnitStock is all that a sender of swarms can offer: the bytes of this node, or the names of the origin's units.
#pragma once

#include <cstdint>
#include <vector>

#include "blobs/local_bytes.h"
#include "peers/swarm/version_units.h"
#include "weft/bytes/source.h"
#include "weft/cluster/exchange.h"
#include "weft/result.h"

namespace weft {

// Any thread.
class UnitStock {
 public:
  virtual ~UnitStock() = default;
  virtual std::vector<ChunkRun> runs(const VersionUnits& version) = 0;  // the chunks of a version that it has
  // As offer_of() (peers/swarm/unit_offer.h), or with `names`, as in a Want, offer_with_token().
  virtual Result<PeerReply> offer(const VersionUnits& version, std::uint32_t unit, bool names) = 0;
  // True: an offer is a name. Nothing on this node tells when its reader ends.
  virtual bool by_name() const = 0;
};

class LocalStock final : public UnitStock {
 public:
  explicit LocalStock(LocalBytes& bytes) : bytes_(bytes) {}  // which outlive this
  std::vector<ChunkRun> runs(const VersionUnits& version) override;
  Result<PeerReply> offer(const VersionUnits& version, std::uint32_t unit, bool names) override;
  bool by_name() const override { return false; }

 private:
  LocalBytes& bytes_;
};

// The origin has all chunks of each version.
class OriginStock final : public UnitStock {
 public:
  std::vector<ChunkRun> runs(const VersionUnits& version) override { return version.blobs(); }
  Result<PeerReply> offer(const VersionUnits& version, std::uint32_t unit, bool names) override;
  bool by_name() const override { return true; }
};

}  // namespace weft
