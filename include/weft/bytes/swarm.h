// This node's part in swarms (peers/swarm/peer_swarms.cc): nodes that fetch one version at once give it to each other
// (src/swarm/README.md). The fetcher says which chunks it wants, and the swarms hand it offered units to read.
//
// Threads: every call from any thread, and none waits for a message. Trust: the bytes of a unit are read by a source
// (weft/bytes/source.h, ReadAid::offered), whose reader verifies them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "weft/bytes/source.h"
#include "weft/content.h"
#include "weft/result.h"

namespace weft {

// A version of at most so many bytes, or one tensor, comes so soon that a swarm gains nothing.
inline constexpr std::uint64_t kSwarmBytesMin = 32U << 20U;

// A unit that another node has offered and this node has accepted: consecutive chunks of a version, of one or several
// blobs. Dropped without arrived(), the node lacks it again. A call, or the drop, may call back on_change(). Any
// thread.
class OfferedUnit {
 public:
  virtual ~OfferedUnit() = default;
  virtual const Digest& manifest() const = 0;
  virtual std::span<const ChunkRun> runs() const = 0;
  // True: the sender has offered the unit by name, and its bytes come from a source that reads_named(), without
  // ReadAid::offered.
  virtual bool by_name() const { return false; }
  // False: the sender is so slow that another node should send the unit. A read of the unit then ends.
  virtual bool is_wanted() const { return true; }  // calls nobody
  // The node holds, verified, all chunks of the unit that it wants.
  virtual void arrived() = 0;
  // A chunk of the sender was wrong: the sender gets no more wants of this version.
  virtual void refuted() {}
};

// The most accepted units of a version that are not read yet.
inline constexpr unsigned kAcceptedMax = 12;

class VersionSwarms {
 public:
  virtual ~VersionSwarms() = default;

  // Wants these chunks of a version, and joins its swarm. The version's manifest is local, the chunks are not: the
  // swarm asks for a chunk again that had arrived. Chunks that are wanted already change nothing. `coded`: from now on
  // the reads of the version's units have bases (ReadAid::bases), so that a unit may come as differences.
  virtual Status want(const Digest& manifest, std::span<const ChunkRun> runs, bool coded) = 0;
  // Wants no chunk of the version any more. Open offers of it are still read.
  virtual void leave(const Digest& manifest) = 0;
  // A reader waits for a chunk; calls are counted.
  virtual void wait_for(const Digest& manifest, const ChunkRun& run) = 0;
  virtual void stop_waiting(const Digest& manifest, const ChunkRun& run) = 0;
  // Returns the next accepted unit, or null.
  virtual std::shared_ptr<OfferedUnit> take() = 0;
  // True if another node is known that fetches the version too. Calls nobody.
  virtual bool has_partners(const Digest& manifest) const = 0;
  // Sets the function to call when take() has a unit, or has_partners() becomes true: on a thread of the exchange, so
  // it is short. Empty: none. After this returns, the function that it replaces is not called any more.
  virtual void on_change(std::function<void()> call) = 0;
};

}  // namespace weft
