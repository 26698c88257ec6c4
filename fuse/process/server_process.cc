#include "fuse/process/server_process.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <vector>

#include "base/argv.h"
#include "fuse/process/channel.h"
#include "os/unix_socket.h"

namespace weft {
namespace {

// The server leaves the caller's session and terminal at once, because it never walks to the mount point (see
// background.h). Its supervisor may still be in that session.
void leave_terminal(const MountOptions& options) {
  ::setsid();
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  int messages = options.log_file.empty() ? -1 : ::open(options.log_file.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (messages < 0) messages = null;
  ::dup2(null, STDIN_FILENO);
  ::dup2(null, STDOUT_FILENO);
  ::dup2(messages, STDERR_FILENO);
}

// Runs in the child.
[[noreturn]] void exec_self(const std::string& program, const MountOptions& options, std::vector<char*>& words,
                            std::span<const int> inherited, int report) {
  for (const int fd : inherited) inherit(fd);
  if (!options.foreground) leave_terminal(options);
  ::execv(program.c_str(), words.data());
  const Error error = sys_error(errno, program);
  if (!say(report, Say::failed, error.message).ok()) ::_exit(126);
  ::_exit(127);
}

// Returns the first word of a field of /proc/PID/status.
std::string process_field(pid_t pid, std::string_view name) {
  std::ifstream file(fmt::format("/proc/{}/status", pid));
  for (std::string key, word, rest; file >> key >> word && std::getline(file, rest);)
    if (key == name) return word;
  return "";
}

}  // namespace

void inherit(int fd) {
  ::fcntl(fd, F_SETFD, 0);
}

void keep_private(int fd) {
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);
}

Result<Fd> open_pid(pid_t pid) {
  Fd fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!fd.valid()) return sys_error(errno, "watching the server");
  return fd;
}

Result<pid_t> start_self(const std::string& program, const MountOptions& options, const std::string& word,
                         std::span<const int> inherited, int report) {
  std::vector<std::string> words = to_words(options);
  words.insert(words.begin(), "mount.weft");
  words.push_back(word);
  std::vector<char*> argv = argv_of(words);
  const pid_t pid = ::fork();
  if (pid == 0) exec_self(program, options, argv, inherited, report);
  if (pid < 0) return sys_error(errno, "starting a process of the mount");
  return pid;
}

Launcher exec_launcher(std::string program, MountOptions options) {
  return [program = std::move(program), options = std::move(options)](const ServerEnds& ends) -> Result<pid_t> {
    const std::array inherited{ends.channel, ends.state, ends.open};
    return start_self(program, options, fmt::format("--serve={},{},{}", ends.channel, ends.state, ends.open), inherited,
                      ends.channel);
  };
}

Result<ServerProcess> ServerProcess::start(const Launcher& launcher, int state, int open) {
  WEFT_TRY(ChannelEnds ends, make_channel());
  WEFT_TRY(const pid_t pid, launcher({ends.server.get(), state, open}));
  return adopt(pid, std::move(ends.supervisor));
}

Result<ServerProcess> ServerProcess::adopt(pid_t pid, Fd channel) {
  WEFT_TRY(Fd exit, open_pid(pid));
  return ServerProcess(pid, std::move(exit), std::move(channel));
}

void ServerProcess::kill() const {
  ::kill(pid_, SIGKILL);
}

std::optional<int> ServerProcess::wait(std::chrono::milliseconds time) const {
  int status = 0;
  if (!wait_for(exit_.get(), POLLIN, time) || ::waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
  return status;
}

bool ServerProcess::traced() const {
  const std::string tracer = process_field(pid_, "TracerPid:");
  return !tracer.empty() && tracer != "0";
}

bool ServerProcess::stopped() const {
  return process_field(pid_, "State:") == "T";
}

std::string describe_end(int wait_status) {
  if (!WIFSIGNALED(wait_status)) return fmt::format("ended with exit code {}", WEXITSTATUS(wait_status));
  const char* name = ::sigabbrev_np(WTERMSIG(wait_status));
  return fmt::format("was killed by {}{}", name == nullptr ? "signal " : "SIG",
                     name == nullptr ? std::to_string(WTERMSIG(wait_status)) : name);
}

}  // namespace weft
