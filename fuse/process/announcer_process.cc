#include "fuse/process/announcer_process.h"

#include <fmt/core.h>
#include <poll.h>
#include <sys/wait.h>

#include <array>
#include <csignal>
#include <string>

#include "base/log.h"
#include "fuse/process/server_process.h"
#include "os/unix_socket.h"

namespace weft {
namespace {

constexpr std::chrono::seconds kEndPatience{1};
constexpr std::chrono::seconds kPause{1};             // after a loss, before the next start
constexpr std::chrono::seconds kPauseWithReason{30};  // after an exit with an error message

}  // namespace

AnnouncerLauncher announcer_launcher(const std::string& program, const MountOptions& options) {
  if (!options.announce) return {};
  return [program, options](int state) {
    const std::array inherited{state};
    return start_self(program, options, fmt::format("--announce={}", state), inherited, -1);
  };
}

void AnnouncerProcess::begin(AnnounceWords& words, int state) {
  if (!launcher_ || words_ != nullptr) return;
  words_ = &words;
  state_ = state;
  start();
}

void AnnouncerProcess::start() {
  next_start_ = Clock::now() + kPause;
  const auto pid = launcher_(state_);
  auto exit = pid.ok() ? open_pid(*pid) : Result<Fd>(pid.error());
  if (!exit.ok()) return log_error("no announcer: {}", exit.error().message);
  pid_ = *pid;
  exit_ = std::move(*exit);
  words_->pid = pid_;
}

void AnnouncerProcess::poll() {
  if (words_ == nullptr) return;
  if (exit_ && wait_for(exit_->get(), POLLIN, std::chrono::milliseconds(0))) take_end();
  if (!exit_ && Clock::now() >= next_start_) start();
}

// The pid is cleared first: after waitpid() it may belong to another process.
void AnnouncerProcess::take_end() {
  words_->pid = 0;
  int status = 0;
  const bool known = ::waitpid(pid_, &status, 0) == pid_;
  if (known && status != 0) log_error("the announcer {}", describe_end(status));
  if (known && WIFEXITED(status)) next_start_ = Clock::now() + kPauseWithReason;
  exit_.reset();
}

void AnnouncerProcess::reopen_log() const {
  if (exit_) ::kill(pid_, SIGHUP);
}

void AnnouncerProcess::stop() {
  if (words_ == nullptr) return;
  if (exit_) {
    words_->pid = 0;
    ::kill(pid_, SIGKILL);
    wait_for(exit_->get(), POLLIN, kEndPatience);
    ::waitpid(pid_, nullptr, WNOHANG);
    exit_.reset();
  }
  words_ = nullptr;
}

std::optional<AnnouncerProcess::Clock::time_point> AnnouncerProcess::next_poll() const {
  if (words_ == nullptr || exit_) return std::nullopt;
  return next_start_;
}

}  // namespace weft
