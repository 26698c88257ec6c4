// The announcer of a mount (fuse/announce), seen from its supervisor.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>

#include "fuse/kernel/announcing.h"
#include "fuse/process/options.h"
#include "os/sys.h"
#include "weft/result.h"

namespace weft {

// Forks an announcer that attaches the memory of SharedState, and returns its pid.
using AnnouncerLauncher = std::function<Result<pid_t>(int state)>;

// Runs `program` as `mount.weft STORE DIR … --announce=STATE`. An empty launcher if options.announce is not set.
AnnouncerLauncher announcer_launcher(const std::string& program, const MountOptions& options);

// Starts the announcer if one is wanted, and starts it again after a pause if it ends. One thread.
class AnnouncerProcess {
 public:
  using Clock = std::chrono::steady_clock;

  // An empty launcher: no announcer is wanted.
  explicit AnnouncerProcess(AnnouncerLauncher launcher) : launcher_(std::move(launcher)) {}
  ~AnnouncerProcess() { stop(); }
  AnnouncerProcess(const AnnouncerProcess&) = delete;
  AnnouncerProcess& operator=(const AnnouncerProcess&) = delete;

  // Call when the mount answers requests: starts the announcer. `words` and `state` outlive this.
  void begin(AnnounceWords& words, int state);
  void poll();
  void reopen_log() const;
  // Kills the announcer. An announcer that waits for a reply ends with that reply, or with the mount.
  void stop();

  int exit_fd() const { return exit_ ? exit_->get() : -1; }  // readable once the announcer has ended
  std::optional<Clock::time_point> next_poll() const;        // when to call poll(); nullopt: when exit_fd() is readable

 private:
  void start();
  void take_end();

  const AnnouncerLauncher launcher_;
  AnnounceWords* words_ = nullptr;
  int state_ = -1;
  pid_t pid_ = 0;
  std::optional<Fd> exit_;
  Clock::time_point next_start_{};
};

}  // namespace weft
