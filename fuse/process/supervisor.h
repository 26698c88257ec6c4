// The process that holds a mount: it keeps /dev/fuse and what servers hand on to each other, starts a server, and when
// that is lost another one on the same device, so that open files go on. Of the store it has the file of open versions
// alone, and hands it on: the servers' locks there are the open file description's, and so outlive each server. It
// reads nothing of a store, so nothing that is wrong there can hurt it.
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

// SIGTERM, SIGINT and SIGHUP are blocked; they come to whoever asks by signalfd(2). To be called before threads start.
void block_stop_signals();
Result<Fd> open_stop_signals();

// One thread.
class Supervisor {
 public:
  // `open_versions`: the store's file of them. None, where there is none: then what servers hold ends with each.
  // `announcer`: empty where nothing is announced.
  Supervisor(MountOptions options, Launcher launcher, Fd open_versions, AnnouncerLauncher announcer = {});

  // Mounts and stays until the mount is gone, or a stop signal comes: then it unmounts. An error when it cannot mount,
  // or gives up: then the mount is taken away, so that nobody waits for it. `ready` is called when the mount answers.
  Status run(const std::function<void()>& ready);
  // The same from where another program left off.
  Status resume(const InheritedEnds& inherited);

 private:
  using Clock = std::chrono::steady_clock;
  enum class Phase { starting, given_device, ready };
  struct Current {
    ServerProcess process;
    Phase phase = Phase::starting;
    std::uint64_t finished_before = 0;  // requests of earlier servers
    bool deaf = false;                  // its end of the channel is closed
    std::string failure = {};           // what it said before its end
  };
  struct Candidate {  // a server of another program, that is to follow the current one
    ServerProcess process;
    std::string program;
    Fd client;
    Clock::time_point deadline;
  };

  Result<ServerProcess> open_store_first();
  void open_door();
  Status supervise();
  void wait_for_events();
  std::chrono::milliseconds until_next_look() const;
  RequestLog requests() const { return RequestLog(state_->head().requests); }

  void look_at_current();
  void hear_current();
  void server_is_ready();
  void give_device();
  Loss describe_loss(int wait_status) const;
  void lost(int wait_status);
  void prepare_next();
  void start_next();
  void look_for_stall();
  void stop(std::string_view why);
  void give_up(std::string reason);

  // supervisor_upgrade.cc
  void look_at_upgrades();
  void consider(UpgradeRequest request);
  std::string objection() const;
  void look_at_candidate();
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
  std::optional<Current> current_;       // nullopt: lost, the next starts at next_start_
  std::optional<ServerProcess> undead_;  // was killed, and waits inside the kernel
  std::optional<Candidate> candidate_;
  std::string taken_over_;  // the program of a candidate that has become current_, until it is ready
  Fd client_;               // who asked for it
  RestartPolicy policy_;
  StallWatch stall_;
  Clock::time_point next_start_{};
  Clock::time_point stop_deadline_{};
  bool stopping_ = false;
  bool over_ = false;
  Status outcome_;
};

}  // namespace weft
