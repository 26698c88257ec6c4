// Implements the setting `follow`: fetches new versions of these models when the registry reports them, before the
// first read.
#pragma once

#include "base/worker.h"
#include "daemon/bytes.h"
#include "daemon/config.h"
#include "events/follower.h"
#include "os/bell.h"
#include "weft/store/store.h"

namespace weft {

class Follow {
 public:
  // Starts a worker. It first fetches the newest version of each followed model; it sleeps while no model is followed.
  // Both arguments outlive this.
  Follow(Store& store, Bytes& bytes);

  void configure() { changed_.ring(); }  // applies the current configuration

 private:
  Worker::Pause round();
  bool follows() const { return !bytes_.config.get()->follow.empty(); }
  void wait(int commits) const;
  Status follow();
  Status fetch_newest();
  void fetch(const ModelEvent& event);
  bool is_followed(const ModelEvent& event) const;

  Store& store_;
  Bytes& bytes_;
  const Bell changed_;  // rung after a change of the configuration, and at the end
  Worker worker_{"follow"};
};

}  // namespace weft
