// One server as its supervisor holds it: a process, and a channel to it.
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

inline constexpr std::chrono::milliseconds kServerEndPatience{5000};  // once its mount is gone, or it was killed

// Forks a server that is to take `ends`, and returns its pid.
using Launcher = std::function<Result<pid_t>(const ServerEnds& ends)>;

// Runs `program` as `mount.weft STORE DIR … --serve=CHANNEL,STATE,OPEN`, the three being numbers of inherited
// descriptors. Its messages go to options.log_file, or to stderr in the foreground.
Launcher exec_launcher(std::string program, MountOptions options);
// Starts `program` in the same way with this word behind the options, and these descriptors inherited. Why it could not
// be run goes to `report`, a channel, unless that is -1. Returns the pid.
Result<pid_t> start_self(const std::string& program, const MountOptions& options, const std::string& word,
                         std::span<const int> inherited, int report);
// Readable once the process has ended.
Result<Fd> open_pid(pid_t pid);
// Keeps a descriptor open over an exec, or closes it then again.
void inherit(int fd);
void keep_private(int fd);

class ServerProcess {
 public:
  static Result<ServerProcess> start(const Launcher& launcher, int state, int open);
  // One that another program of ours started in this process.
  static Result<ServerProcess> adopt(pid_t pid, Fd channel);

  pid_t pid() const { return pid_; }
  int exit_fd() const { return exit_.get(); }  // readable once it has ended
  int channel() const { return channel_.get(); }
  void kill() const;
  // Its wait status; nullopt when it does not end in time.
  std::optional<int> wait(std::chrono::milliseconds time) const;
  bool traced() const;   // a debugger holds it
  bool stopped() const;  // by a signal: it answers nothing

 private:
  ServerProcess(pid_t pid, Fd exit, Fd channel) : pid_(pid), exit_(std::move(exit)), channel_(std::move(channel)) {}
  pid_t pid_;
  Fd exit_;
  Fd channel_;
};

// Is there something to read, or the other end gone?
bool readable(int fd);

// "was killed by SIGSEGV", "ended with exit code 3"
std::string describe_end(int wait_status);

}  // namespace weft
