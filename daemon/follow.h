// The setting follow: new versions of these models are fetched as the registry tells of them, before anybody reads them.
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
  // Fetches the newest versions first. Both outlive this.
  Follow(ClusterStore& store, Bytes& bytes) : store_(store), bytes_(bytes), thread_([this] { run(); }) {}
  ~Follow();
  Follow(const Follow&) = delete;
  Follow& operator=(const Follow&) = delete;

 private:
  void run();
  Status follow();
  Status fetch_newest();
  void fetch(const ModelEvent& event);
  bool is_followed(const ModelEvent& event) const;

  ClusterStore& store_;
  Bytes& bytes_;
  const Bell ended_;
  std::atomic<bool> ending_ = false;
  std::thread thread_;
};

}  // namespace weft
