// The announcer of a mount (fuse/announce) as its supervisor holds it.
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

// Forks an announcer that takes the memory of SharedState, and returns its pid.
using AnnouncerLauncher = std::function<Result<pid_t>(int state)>;

// Runs `program` as `mount.weft STORE DIR … --announce=STATE`; none where the options say nothing of it.
AnnouncerLauncher announcer_launcher(const std::string& program, const MountOptions& options);

// One that is wanted is started, and once it is lost another one, after a pause. One thread.
class AnnouncerProcess {
 public:
  using Clock = std::chrono::steady_clock;

  // An empty launcher: none is wanted.
  explicit AnnouncerProcess(AnnouncerLauncher launcher) : launcher_(std::move(launcher)) {}
  ~AnnouncerProcess() { stop(); }
  AnnouncerProcess(const AnnouncerProcess&) = delete;
  AnnouncerProcess& operator=(const AnnouncerProcess&) = delete;

  // From now on it is to run: the mount answers. `words` and `state` outlive this.
  void begin(AnnounceWords& words, int state);
  void look();
  // Kills it. It may wait for an answer of the mount; then it ends as that comes, or the mount goes.
  void stop();

  int exit_fd() const { return exit_ ? exit_->get() : -1; }  // readable once it has ended
  std::optional<Clock::time_point> next_look() const;        // look() then; nothing: when exit_fd() says so

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
