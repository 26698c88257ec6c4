// A server's background thread. It completes the setup once the mount answers, passes signals to the supervisor,
// notices the supervisor's end, frees memory when the mount is idle, and reports the figures of the mount to weftd.
#pragma once

#include <pthread.h>

#include <thread>

#include "fuse/ops/session.h"
#include "fuse/state/server.h"
#include "os/bell.h"
#include "os/sys.h"
#include "weft/programs/mount_figures.h"
#include "weft/result.h"

namespace weft {

class Watcher {
 public:
  // All outlive this. Construct it in the thread that will loop; `channel` leads to the supervisor.
  Watcher(Session& session, Server& server, MountReports& reports, int channel)
      : session_(session), server_(server), reports_(reports), channel_(channel), loop_thread_(::pthread_self()) {}
  ~Watcher() { join(); }

  Status start();
  void loop_ended();
  void join();

 private:
  void run();
  bool wait_for_init() const;
  void set_up();
  void begin_announcing();
  void assemble();
  void publish_status();
  void lose_supervisor();
  bool take_signals();
  void end_loop();
  void rest();

  Session& session_;
  Server& server_;
  MountReports& reports_;
  int channel_;  // -1: the supervisor is gone
  pthread_t loop_thread_;
  Fd signals_;
  const Bell ended_;  // rings permanently once the loop has ended
  Status read_ahead_;
  std::uint64_t begun_ = 0;  // requests begun at the last poll
  unsigned idle_polls_ = 0;
  std::uint64_t refused_ = 0;  // refused opens in the published status
  std::thread thread_;
};

}  // namespace weft
