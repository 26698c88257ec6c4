// The chunks of a version that this node has, and the units that they complete.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "blobs/local_bytes.h"
#include "peers/swarm/version_units.h"
#include "swarm/unit_set.h"
#include "weft/bytes/source.h"

namespace weft {

// Not thread-safe.
class LocalUnits {
 public:
  explicit LocalUnits(std::shared_ptr<const VersionUnits> version);

  // Returns the units that are complete now and were not before, in order. Chunks that the version lacks change
  // nothing.
  std::vector<std::uint32_t> add(std::span<const ChunkRun> runs);
  void remove(std::uint32_t unit);  // with all its chunks
  const UnitSet& complete() const { return complete_; }

 private:
  bool completes(std::uint32_t unit);

  const std::shared_ptr<const VersionUnits> version_;
  std::vector<bool> chunks_;  // by number
  UnitSet complete_;
};

// Returns the local chunks of a version: whole blobs, and the single chunks of blobs that are not local as a whole.
std::vector<ChunkRun> local_runs(const VersionUnits& version, LocalBytes& bytes);

}  // namespace weft
