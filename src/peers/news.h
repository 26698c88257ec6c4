// Announces arriving chunks to directory nodes, and asks them for other holders of the versions being read. A
// worker makes many small calls, and sleeps while no chunks arrive.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/worker.h"
#include "peers/chunk_map.h"
#include "peers/directory.h"
#include "peers/links.h"
#include "peers/view.h"
#include "weft/cluster/exchange.h"
#include "weft/store/store.h"

namespace weft {

struct PeerNewsParts {
  Store& store;
  std::string self;  // this node's id
  PeerDirectory& directory;
  PeerView& view;
  PeerLinks& links;
  Exchange& exchange;
};

// Any thread.
class PeerNews {
 public:
  // The parts outlive this. The destructor waits for a call in flight: a second at most.
  explicit PeerNews(PeerNewsParts parts);

  // Call when a version is read: announces its local chunks, and asks for other holders.
  void expect(const Digest& manifest);
  void arrived(const Digest& manifest, std::span<const ChunkRun> runs);
  // Call after an eviction: surveys the local chunks again, and announces the result, also if none is left.
  void survey_again();
  // Asks all directory nodes of a manifest for its holders, because one directory may have restarted, or lie.
  void ask(const Digest& manifest, Deadline deadline);
  // Returns the directory nodes of a manifest, the preferred one first. Leaves out the publisher if there are others,
  // because its answers would wait behind its uploads.
  std::vector<std::string> directories(const Digest& manifest) const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Had {
    std::shared_ptr<const ChunkMap> map;
    std::optional<ChunkSet> chunks;  // none: not surveyed yet
    bool dirty = true;
    bool told = false;  // a chunk was announced
    Clock::time_point said{};
    Clock::time_point changed = Clock::now();
    Clock::time_point backup_said{};
    bool backup_waits = false;  // the second directory node lacks the last news
  };

  enum class Turn : std::uint8_t {
    moving,
    untold,  // no chunk arrives, but a directory node did not answer
    still,
  };
  Worker::Pause round() WEFT_EXCLUDES(mutex_);
  void wake() WEFT_REQUIRES(mutex_);
  void recall() WEFT_EXCLUDES(mutex_);
  Result<std::vector<Digest>> manifests_of_others() const;
  Turn turn() WEFT_EXCLUDES(mutex_);
  Clock::duration pace(Clock::time_point now) const WEFT_EXCLUDES(mutex_);
  std::vector<Digest> due(Clock::time_point now, Clock::duration pause) WEFT_EXCLUDES(mutex_);
  std::optional<HadChunks> news_of(const Digest& manifest) WEFT_EXCLUDES(mutex_);
  struct Told {
    bool all = true;     // all directory nodes have the news; else they are sent again
    bool heard = false;  // an answer listed other holders
  };
  Told tell(const Digest& manifest) WEFT_EXCLUDES(mutex_);
  bool tell(const std::string& node, const HadChunks& news, bool& heard);
  // Returns `had` without this node.
  std::vector<HadChunks> others_of(std::vector<HadChunks> had) WEFT_EXCLUDES(mutex_);
  bool backup_is_due(const Digest& manifest) WEFT_EXCLUDES(mutex_);
  ChunkSet survey(const ChunkMap& map) const;
  std::optional<std::vector<HadChunks>> holders(const std::string& node, const Digest& manifest, Deadline deadline);
  void ask_some(const Digest& manifest);
  std::optional<std::vector<std::byte>> call(const std::string& node, const PeerRequest& request, Deadline deadline)
      WEFT_EXCLUDES(mutex_);
  void drop_one() WEFT_REQUIRES(mutex_);

  const PeerNewsParts parts_;
  mutable Mutex mutex_;
  std::map<Digest, Had> had_ WEFT_GUARDED_BY(mutex_);
  Clock::time_point active_ WEFT_GUARDED_BY(mutex_){};  // when a chunk last arrived or was expected
  std::map<std::string, Clock::time_point> silent_ WEFT_GUARDED_BY(mutex_);  // nodes left alone, and until when
  Clock::time_point arrived_at_ WEFT_GUARDED_BY(mutex_){};                   // when a chunk last arrived
  Clock::duration gap_ WEFT_GUARDED_BY(mutex_){};                            // time between the last two chunks
  std::size_t holders_ WEFT_GUARDED_BY(mutex_) = 0;                          // listed in the last answer
  bool sleeps_ WEFT_GUARDED_BY(mutex_) = false;                              // the worker must be woken
  bool recalled_ = false;                                                    // used only by the worker
  Worker worker_{"news for peers"};
};

}  // namespace weft
