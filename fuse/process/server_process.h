// A server process, seen from its supervisor: a pid and a channel.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "fuse/process/options.h"
#include "os/sys.h"
#include "weft/result.h"

namespace weft {

inline constexpr std::chrono::milliseconds kServerEndPatience{5000};  // after the mount is gone, or after SIGKILL

// Forks a server that takes over `ends`, and returns its pid.
using Launcher = std::function<Result<pid_t>(const ServerEnds& ends)>;

// Runs `program` as `mount.weft STORE DIR … --serve=CHANNEL,STATE,OPEN`, the numbers of three inherited descriptors.
// The server logs to options.log_file, or to stderr in the foreground.
Launcher exec_launcher(std::string program, MountOptions options);
// Starts `program` in the same way, with `word` after the options and these descriptors inherited. If it cannot be run,
// the reason goes to the channel `report`, unless that is -1. Returns the pid.
Result<pid_t> start_self(const std::string& program, const MountOptions& options, const std::string& word,
                         std::span<const int> inherited, int report);
// Returns a pidfd, readable once the process has ended.
Result<Fd> open_pid(pid_t pid);
// inherit() keeps a descriptor open over an exec, keep_private() closes it then.
void inherit(int fd);
void keep_private(int fd);

class ServerProcess {
 public:
  static Result<ServerProcess> start(const Launcher& launcher, int state, int open);
  // Takes over a server that this process started before an upgrade made it another program.
  static Result<ServerProcess> adopt(pid_t pid, Fd channel);

  pid_t pid() const { return pid_; }
  int exit_fd() const { return exit_.get(); }  // readable once it has ended
  int channel() const { return channel_.get(); }
  void kill() const;
  // Returns its wait status; nullopt if it does not end in time.
  std::optional<int> wait(std::chrono::milliseconds time) const;
  bool traced() const;   // a debugger is attached
  bool stopped() const;  // stopped by a signal: it answers nothing

 private:
  ServerProcess(pid_t pid, Fd exit, Fd channel) : pid_(pid), exit_(std::move(exit)), channel_(std::move(channel)) {}
  pid_t pid_;
  Fd exit_;
  Fd channel_;
};

// "was killed by SIGSEGV", "ended with exit code 3"
std::string describe_end(int wait_status);

}  // namespace weft
