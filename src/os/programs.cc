#include "os/programs.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <grp.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "base/argv.h"
#include "base/text.h"
#include "os/sys.h"

namespace weft {
namespace {

// Runs in the child of a process with threads: system calls only.
[[noreturn]] void become(const ChildProgram& child, char* const* words) {
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::setsid();
  std::array<char*, 1> nothing{};
  const UserIds& user = child.user;
  const bool own = ::geteuid() == 0 && user.uid != 0;
  const bool ready = ::fchdir(child.directory) == 0 && ::dup2(child.input, STDIN_FILENO) >= 0 &&
                     ::dup2(child.output, STDOUT_FILENO) >= 0 && ::fcntl(child.lock, F_SETFD, 0) == 0 &&
                     (::geteuid() != 0 || (::setgroups(user.groups.size(), user.groups.data()) == 0 &&
                                           ::setgid(user.gid) == 0 && ::setuid(user.uid) == 0));
  if (ready) ::execve(child.program.c_str(), words, own ? nothing.data() : environ);
  ::_exit(127);
}

}  // namespace

std::optional<std::string> find_program(const std::string& name, const std::string& own_directory,
                                        const std::string& path) {
  std::string along = path + ":/usr/sbin:/sbin";
  if (!own_directory.empty())
    along = own_directory + ":" + own_directory + "/../sbin:" + own_directory + "/../bin:" + along;
  for (const std::string_view directory : split(along, ':')) {
    if (directory.empty()) continue;
    std::string candidate = std::string(directory) + "/" + name;
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return std::nullopt;
}

std::string own_program_directory() {
  std::error_code unknown;
  return std::filesystem::read_symlink("/proc/self/exe", unknown).parent_path().string();
}

Result<pid_t> start_program(ChildProgram child) {
  const std::vector<char*> argv = argv_of(child.words);
  const pid_t pid = ::fork();
  if (pid == 0) become(child, argv.data());
  if (pid < 0) return sys_error(errno, "starting " + child.program);
  return pid;
}

bool is_running(pid_t child) {
  int status = 0;
  const pid_t changed = ::waitpid(child, &status, WNOHANG | WUNTRACED);
  const bool is_stopped = changed > 0 && WIFSTOPPED(status);
  if (is_stopped) ::kill(child, SIGKILL);
  return changed == 0 || is_stopped;
}

void interrupt_program(pid_t child) {
  ::kill(child, SIGINT);
}

bool is_being_killed(pid_t thread) {
  std::ifstream status(fmt::format("/proc/{}/status", thread));
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("SigPnd:\t") && !line.starts_with("ShdPnd:\t")) continue;
    std::uint64_t pending = 0;
    std::from_chars(line.data() + 8, line.data() + line.size(), pending, 16);
    if ((pending >> (SIGKILL - 1) & 1U) != 0) return true;
  }
  return false;
}

}  // namespace weft
