// What this node believes about who has what: by version records and the owner map who first had it, by what directory
// nodes say who has it now. Beliefs: whoever is asked may answer otherwise. Never asks anybody itself.
// The owner map tells of versions whose manifests are here; what a version has from others is found without theirs.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/time_source.h"
#include "peers/chunk_map.h"
#include "peers/messages.h"
#include "weft/manifest.h"
#include "weft/source.h"
#include "weft/store.h"

namespace weft {

// Who may have some bytes. In the order in which equals are asked: those who are fetching them too, others who have
// all, and last who everybody would ask: `sought` while others are fetching the same.
struct PeerCandidate {
  enum class Kind : std::uint8_t { part, whole, first, sought };
  std::string node;
  Kind kind = Kind::first;
};

// Any thread.
class PeerView {
 public:
  using Clock = std::chrono::steady_clock;
  PeerView(Store& store, std::string self, const TimeSource& time = steady_time())
      : store_(store), self_(std::move(self)), time_(time) {}

  // As BlobSource::expect.
  void expect(const VersionRow& version, const Manifest* manifest, std::span<const ContentId> blobs);
  // Never this node itself. Without a run: of the manifest's own bytes.
  std::vector<PeerCandidate> candidates(const Digest& manifest, const ChunkRun* run);
  // Those of `nodes` that have not said that they lack it, when none of candidates() has it: who published a version
  // that this one shares bytes with, then any.
  std::vector<PeerCandidate> others(const Digest& manifest, const ChunkRun* run, std::span<const std::string> nodes);
  // One of others() gave it, and may well have more of the version: one of candidates() from now on.
  void gave(const Digest& manifest, const std::string& node);

  // What a directory node said; takes the place of what was said of that manifest before.
  void heard(const Digest& manifest, std::vector<HadChunks> had);
  // It said that it has not what candidates() promised; null: the manifest's bytes.
  void lacks(const Digest& manifest, const ChunkRun* run, const std::string& node);

  // The node published the version a moment ago: what it lacks may be there soon.
  bool may_come(const Digest& manifest, const std::string& node) const;

  // Another node was just given it, and is left to bring it: it is not dear, for a moment, but busy.
  void yield(const ChunkRun& run);
  bool yielded(const ChunkRun& run) const;

  // Manifests whose holders are worth asking for now: those of versions that were expected lately, and of versions
  // that had blobs of them first; those that were asked for in the last `age` are left out.
  std::vector<Digest> to_ask(std::chrono::milliseconds age);
  std::shared_ptr<const ChunkMap> chunks(const Digest& manifest) const;  // null: not known
  std::string publisher(const Digest& manifest) const;                   // "": not known

 private:
  // Of one manifest.
  struct Known {
    std::string publisher;  // of the version
    std::shared_ptr<const ChunkMap> chunks;
    std::unordered_map<ContentId, Digest> inherited;  // blob -> manifest of the version that had it first
    std::vector<std::string> kin;                     // publishers of parents that it shares bytes with
    std::vector<std::string> gave;                    // as gave()
    std::vector<HadChunks> had;
    Clock::time_point asked = Clock::time_point::min();  // for its holders
    Clock::time_point expected{};                        // lately, by a reader
    Clock::time_point young_until{};                     // what its publisher lacks may be there in a moment
  };
  using Lack = std::pair<std::string, Digest>;  // a node, and a blob's root or a manifest
  void put(const std::string& node, PeerCandidate::Kind kind, const Digest& what,
           std::vector<PeerCandidate>& out) const;
  void add(const Known& known, const Digest& what, const ChunkRun* run, std::vector<PeerCandidate>& out) const;
  Status find_owners(const VersionRow& version, std::span<const ContentId> blobs, Known& known,
                     std::map<Digest, std::string>& others);
  Known& entry(const Digest& manifest);
  bool is_young(const Digest& manifest, const std::string& publisher) const;  // with the lock held

  Store& store_;
  const std::string self_;
  const TimeSource& time_;
  mutable std::mutex mutex_;
  std::map<Digest, Known> known_;              // guarded by mutex_
  std::map<Lack, Clock::time_point> lacking_;  // guarded by mutex_: until when
  using Chunk = std::pair<Digest, std::uint64_t>;
  std::map<Chunk, Clock::time_point> yielded_;  // guarded by mutex_: until when
};

}  // namespace weft
