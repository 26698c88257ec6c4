// The setting follow: new versions of these models are fetched as the registry tells of them, before anybody reads
// them.
#pragma once

#include <atomic>
#include <thread>

#include "daemon/bytes.h"
#include "daemon/live_config.h"
#include "events/follower.h"
#include "os/bell.h"
#include "weft/cluster_store.h"

namespace weft {

class Follow {
 public:
  // Fetches the newest versions first. Sleeps while nothing is followed. Both outlive this.
  Follow(ClusterStore& store, Bytes& bytes) : store_(store), bytes_(bytes), thread_([this] { run(); }) {}
  ~Follow();
  Follow(const Follow&) = delete;
  Follow& operator=(const Follow&) = delete;

  void configure() { changed_.ring(); }  // takes over what the configuration says now

 private:
  void run();
  bool follows() const { return !bytes_.config.get()->follow.empty(); }
  void wait(int commits) const;
  Status follow();
  Status fetch_newest();
  void fetch(const ModelEvent& event);
  bool is_followed(const ModelEvent& event) const;

  ClusterStore& store_;
  Bytes& bytes_;
  const Bell changed_;  // the configuration, or ending_
  std::atomic<bool> ending_ = false;
  std::thread thread_;
};

}  // namespace weft
