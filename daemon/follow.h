// Implements the setting `follow`: fetches new versions of these models when the registry reports them, before the
// first read.
#pragma once

#include <atomic>
#include <thread>

#include "daemon/bytes.h"
#include "daemon/live_config.h"
#include "events/follower.h"
#include "os/bell.h"
#include "weft/store.h"

namespace weft {

class Follow {
 public:
  // Starts the thread. It first fetches the newest version of each followed model; it sleeps while no model is
  // followed. Both arguments outlive this.
  Follow(Store& store, Bytes& bytes) : store_(store), bytes_(bytes), thread_([this] { run(); }) {}
  ~Follow();
  Follow(const Follow&) = delete;
  Follow& operator=(const Follow&) = delete;

  void configure() { changed_.ring(); }  // applies the current configuration

 private:
  void run();
  bool follows() const { return !bytes_.config.get()->follow.empty(); }
  void wait(int commits) const;
  Status follow();
  Status fetch_newest();
  void fetch(const ModelEvent& event);
  bool is_followed(const ModelEvent& event) const;

  Store& store_;
  Bytes& bytes_;
  const Bell changed_;  // rung after a change of the configuration or of ending_
  std::atomic<bool> ending_ = false;
  std::thread thread_;
};

}  // namespace weft
