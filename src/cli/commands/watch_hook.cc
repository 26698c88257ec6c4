#include "cli/commands/watch_hook.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <utility>

#include "cli/shared/mounts.h"
#include "os/unix_socket.h"
#include "weft/names.h"

namespace weft {
namespace {

using Variables = std::vector<std::pair<const char*, std::string>>;

[[noreturn]] void run_shell(const std::string& command, const Variables& variables, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(1);  // the parent ended before prctl()
  for (const auto& [name, value] : variables) ::setenv(name, value.c_str(), 1);
  ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
  ::_exit(127);
}

Variables variables_of(const ModelEvent& event, Store& store) {
  std::string tags;
  for (const std::string& tag : event.tags) tags += (tags.empty() ? "" : " ") + tag;
  return {{"WEFT_EVENT", std::string(name_of(event.kind))},
          {"WEFT_MODEL", event.model},
          {"WEFT_VERSION", std::to_string(event.version)},
          {"WEFT_TAGS", std::move(tags)},
          {"WEFT_PATH", mounted_path(store, event.model, event.version)}};
}

}  // namespace

void WatchHook::add(const ModelEvent& event) {
  const bool told = event.kind == ModelEvent::Kind::publish || event.kind == ModelEvent::Kind::tag;
  if (command_.empty() || !told || event.version == 0) return;
  std::erase_if(waiting_, [&event](const ModelEvent& older) {
    return older.kind == event.kind && older.model == event.model &&
           (event.kind == ModelEvent::Kind::publish || older.tags == event.tags);
  });
  waiting_.push_back(event);
}

Status WatchHook::look() {
  if (running_ && wait_for(running_->ended.get(), POLLIN, std::chrono::milliseconds(0))) WEFT_CHECK(take_end());
  if (running_ || waiting_.empty()) return {};
  const ModelEvent event = std::move(waiting_.front());
  waiting_.erase(waiting_.begin());
  return start(event);
}

Status WatchHook::start(const ModelEvent& event) {
  const Variables variables = variables_of(event, store_);
  context_.environment().out.flush();
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) run_shell(command_, variables, parent);
  if (pid < 0) return sys_error(errno, "running the command of --exec");
  Fd ended(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!ended.valid()) return sys_error(errno, "waiting for the command of --exec");
  running_.emplace(Running{pid, std::move(ended), spec_of(event.model, event.version)});
  return {};
}

Status WatchHook::take_end() {
  int status = 0;
  if (::waitpid(running_->pid, &status, 0) < 0) return sys_error(errno, "the command of --exec");
  if (status != 0) {
    const std::string how = WIFSIGNALED(status) ? fmt::format("was ended by signal {}", WTERMSIG(status))
                                                : fmt::format("ended with exit code {}", WEXITSTATUS(status));
    context_.note(fmt::format("watch: the command for {} {}", running_->what, how));
  }
  running_.reset();
  return {};
}

}  // namespace weft
