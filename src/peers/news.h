// Tells directory nodes which chunks are here as they come, and hears from them who else has what is being read: many
// small calls, by one thread that sleeps while nothing moves.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "peers/chunk_map.h"
#include "peers/directory.h"
#include "peers/links.h"
#include "peers/view.h"
#include "weft/exchange.h"
#include "weft/store.h"

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
  explicit PeerNews(PeerNewsParts parts);  // which outlive it
  ~PeerNews();                             // waits for a call that is under way: a second at most
  PeerNews(const PeerNews&) = delete;
  PeerNews& operator=(const PeerNews&) = delete;

  // A version is being read: what is here of it is told, who else has it is asked for.
  void expect(const Digest& manifest);
  void arrived(const Digest& manifest, std::span<const ChunkRun> runs);
  // Something may have gone: what is here is looked at again, and said, also that there is nothing any more.
  void look_again();
  // Asks all nodes that keep the directory of it who has it: one of them may have restarted, or lie.
  void ask(const Digest& manifest, Deadline deadline);

 private:
  using Clock = std::chrono::steady_clock;
  struct Had {
    std::shared_ptr<const ChunkMap> map;
    std::optional<ChunkSet> chunks;  // none: it is not known yet what is here
    bool dirty = true;
    bool told = false;  // of any chunk
    Clock::time_point said{};
    Clock::time_point changed = Clock::now();
    Clock::time_point moved{};  // when more was last expected or came
    Clock::time_point backup_said{};
    bool backup_waits = false;  // to be told
  };

  enum class Turn : std::uint8_t {
    moving,
    untold,  // nothing moves, but somebody who is to be told did not answer
    still,
  };
  void run();
  void recall();
  Result<std::vector<Digest>> manifests_of_others() const;
  Turn turn();
  Clock::duration pace(Clock::time_point now) const;
  std::vector<Digest> due(Clock::time_point now, Clock::duration pause);
  std::optional<HadChunks> news_of(const Digest& manifest);
  struct Told {
    bool all = true;     // who is to be told; else it is tried again
    bool heard = false;  // who else has some
  };
  Told tell(const Digest& manifest);
  bool tell(const std::string& node, const HadChunks& news, bool& heard);
  std::vector<HadChunks> others_of(std::vector<HadChunks> had);  // without this node
  bool backup_is_due(const Digest& manifest);
  ChunkSet survey(const ChunkMap& map) const;
  std::optional<std::vector<HadChunks>> holders(const std::string& node, const Digest& manifest, Deadline deadline);
  void ask_some(const Digest& manifest);
  std::vector<std::string> nodes_for(const Digest& manifest) const;
  std::optional<std::vector<std::byte>> call(const std::string& node, const PeerRequest& request, Deadline deadline);
  void drop_one();

  const PeerNewsParts parts_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::map<Digest, Had> had_;                        // guarded by mutex_
  Clock::time_point active_{};                       // guarded by mutex_: when something last moved
  std::map<std::string, Clock::time_point> silent_;  // guarded by mutex_: until when a node is not asked
  Clock::time_point arrived_at_{};                   // guarded by mutex_: when a chunk last came here
  Clock::duration gap_{};                            // guarded by mutex_: between it and the one before
  std::size_t holders_ = 0;                          // guarded by mutex_: in the last news
  bool ending_ = false;                              // guarded by mutex_
  bool sleeps_ = false;                              // guarded by mutex_: until somebody wakes it
  std::thread thread_;
};

}  // namespace weft
