// The process that holds a mount. It keeps /dev/fuse and the state that servers pass on, starts a server, and starts
// another one on the same device if that is lost, so that open files continue. Of the store it holds only the file of
// open versions, which it passes to the servers: their locks on it belong to the open file description, and so outlive
// each server. It reads nothing in a store, so a damaged store cannot crash it.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "fuse/process/announcer_process.h"
#include "fuse/process/options.h"
#include "fuse/process/restart_policy.h"
#include "fuse/process/server_process.h"
#include "fuse/process/shared_state.h"
#include "fuse/process/upgrade_door.h"
#include "os/sys.h"
#include "weft/result.h"

namespace weft {

// Blocks SIGTERM, SIGINT and SIGHUP, which are then read by signalfd(2). Call before any thread starts.
void block_signals();
Result<Fd> open_signals();
// Returns the next of these signals. After a SIGHUP the log is reopened, and the mount goes on; the others stop it.
enum class Told : unsigned char { nothing, reopen_log, stop };
Told take_signal(int signals);
// Replaces open_signals() in a process whose loop waits for other things: SIGHUP reopens the log.
void reopen_log_at_hangup();

// One thread.
class Supervisor {
 public:
  // `open_versions`: the store's file of open versions. Invalid if there is none: each server's holds then end with it.
  // `announcer`: empty if the mount does not announce.
  Supervisor(MountOptions options, Launcher launcher, Fd open_versions, AnnouncerLauncher announcer = {});

  // Mounts, and returns when the mount is gone or after a stop signal, on which it unmounts. Fails if it cannot mount,
  // or if it gives up on servers; it unmounts then too, so that no process waits for the mount. Calls `ready` when the
  // mount answers. `passed`: a descriptor with which another process has mounted. The supervisor then serves that
  // mount, and only closes the descriptor where it would unmount.
  Status run(const std::function<void()>& ready, Fd passed = Fd());
  // Resumes a mount that another program held, and goes on like run().
  Status resume(const InheritedEnds& inherited);

 private:
  using Clock = std::chrono::steady_clock;
  enum class Phase { starting, given_device, ready };
  struct Current {
    ServerProcess process;
    Phase phase = Phase::starting;
    std::uint64_t finished_before = 0;  // requests finished by earlier servers
    bool deaf = false;                  // its end of the channel is closed
    std::string failure = {};           // the failure that it reported
  };
  struct Candidate {  // a server of another program, to replace the current one
    ServerProcess process;
    std::string program;
    Fd client;
    Clock::time_point deadline;
  };

  Result<ServerProcess> open_store_first();
  void open_door();
  Status supervise();
  void wait_for_events();
  std::chrono::milliseconds until_next_poll() const;
  RequestLog requests() const { return RequestLog(state_->head().requests); }

  void poll_current();
  void hear_current();
  void server_is_ready();
  void give_device();
  Loss describe_loss(int wait_status) const;
  void lost(int wait_status);
  void prepare_next();
  void start_next();
  void check_stall();
  void reopen_logs();
  void stop(std::string_view why);
  bool unmounts() const { return state_->head().mounted_by != MountedBy::other_process; }
  void give_up(std::string reason);

  // supervisor_upgrade.cc
  void poll_upgrades();
  void consider(UpgradeRequest request);
  std::string objection() const;
  void poll_candidate();
  void drop_candidate(const std::string& why);
  void take_over();
  void become(const std::string& program, Fd client);

  MountOptions options_;
  Launcher launcher_;
  Fd open_versions_;
  std::function<void()> ready_;
  std::optional<SharedState> state_;
  Fd device_;
  Fd signals_;
  std::optional<UpgradeDoor> door_;
  AnnouncerProcess announcer_;
  std::optional<Current> current_;       // nullopt: lost; the next one starts at next_start_
  std::optional<ServerProcess> undead_;  // a killed server that still hangs in the kernel
  std::optional<Candidate> candidate_;
  std::string taken_over_;  // program of the candidate that became current_, until it is ready
  Fd client_;               // the upgrade's client
  RestartPolicy policy_;
  StallWatch stall_;
  Clock::time_point next_start_{};
  Clock::time_point stop_deadline_{};
  bool stopping_ = false;
  bool over_ = false;
  Status outcome_;
};

}  // namespace weft
