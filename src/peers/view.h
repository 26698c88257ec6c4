// The replica map: nodes that probably hold chunks. Version records and the owner map name the node that had a blob
// first, and directory nodes name the nodes that have a whole version. A node may turn out to hold less. Sends no
// messages.
// The owner map covers versions whose manifests are local. For bytes of other versions, kin() names the publishers of
// the parents.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "base/time_source.h"
#include "weft/bytes/source.h"
#include "weft/store/store.h"

namespace weft {

// Any thread.
class PeerView {
 public:
  using Clock = std::chrono::steady_clock;
  PeerView(Store& store, std::string self, const TimeSource& time = steady_time())
      : store_(store), self_(std::move(self)), time_(time) {}

  // As BlobSource::expect.
  void expect(const VersionRow& version, std::span<const ContentId> blobs);
  // Return nodes that may hold a run, or without a run the manifest's own bytes. They leave out this node, and nodes
  // that replied that they lack the bytes. The nodes that should hold all of a version with the bytes.
  std::vector<std::string> candidates(const Digest& manifest, const ChunkRun* run);
  // The publishers of parents that share bytes with the version.
  std::vector<std::string> kin(const Digest& manifest, const ChunkRun* run) const;
  // Those of `nodes`.
  std::vector<std::string> among(std::span<const std::string> nodes, const Digest& manifest, const ChunkRun* run) const;
  // Records that another node than those of candidates() gave bytes, so that candidates() returns this node for the
  // rest of the version.
  void gave(const Digest& manifest, const std::string& node);

  // Replaces the known holders of a whole version by the answer of a directory node.
  void heard(const Digest& manifest, std::vector<std::string> holders);
  // The node replied that it lacks a run that candidates() expected of it; null: the manifest's bytes.
  void lacks(const Digest& manifest, const ChunkRun* run, const std::string& node);

  // True if the node published the version a moment ago, so that it may soon have the bytes that it lacks.
  bool may_come(const Digest& manifest, const std::string& node) const;

  // Returns the manifests whose holders are worth asking for: of versions that were expected lately, and of versions
  // that had their blobs first. Leaves out manifests returned within the last `age`.
  std::vector<Digest> to_ask(std::chrono::milliseconds age);
  std::string publisher(const Digest& manifest) const;  // "": unknown

 private:
  // The knowledge about one manifest.
  struct Known {
    std::string publisher;                               // of the version
    std::unordered_map<ContentId, Digest> inherited;     // blob -> manifest of the version that had it first
    std::vector<std::string> kin;                        // publishers of parents that share bytes with it
    std::vector<std::string> gave;                       // nodes reported by gave()
    std::vector<std::string> holders;                    // of the whole version
    Clock::time_point asked = Clock::time_point::min();  // when its holders were last asked for
    Clock::time_point expected{};                        // when a reader last expected it
    Clock::time_point young_until{};                     // until then its publisher may still lack bytes
  };
  using Lack = std::pair<std::string, Digest>;  // a node, and a blob's root or a manifest
  void put(const std::string& node, const Digest& what, std::vector<std::string>& out) const WEFT_REQUIRES(mutex_);
  void add(const Known& known, const Digest& what, std::vector<std::string>& out) const WEFT_REQUIRES(mutex_);
  Status find_owners(const VersionRow& version, std::span<const ContentId> blobs, Known& known,
                     std::map<Digest, std::string>& others);
  Known& entry(const Digest& manifest) WEFT_REQUIRES(mutex_);
  bool is_young(const Digest& manifest, const std::string& publisher) const WEFT_REQUIRES(mutex_);

  Store& store_;
  const std::string self_;
  const TimeSource& time_;
  mutable Mutex mutex_;
  std::map<Digest, Known> known_ WEFT_GUARDED_BY(mutex_);
  std::map<Lack, Clock::time_point> lacking_ WEFT_GUARDED_BY(mutex_);  // until when
};

}  // namespace weft
