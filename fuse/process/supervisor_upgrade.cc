// Upgrade of a live mount to another program. A server of the new program first shows that it can open the store. Then
// it replaces the current server as after a loss. At last the supervisor executes the new program too.
#include <fmt/core.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>
#include <vector>

#include "base/argv.h"
#include "base/log.h"
#include "fuse/process/channel.h"
#include "fuse/process/supervisor.h"
#include "os/unix_socket.h"

namespace weft {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kCandidatePatience{60};

}  // namespace

void Supervisor::poll_upgrades() {
  if (candidate_ && stopping_) return drop_candidate("the mount ends");
  if (candidate_) poll_candidate();
  if (!door_ || !wait_for(door_->fd(), POLLIN, milliseconds(0))) return;
  if (auto request = door_->answer()) consider(std::move(*request));
}

// Returns why no upgrade can begin; empty if one can.
std::string Supervisor::objection() const {
  if (candidate_ || !taken_over_.empty()) return "another upgrade is under way";
  if (stopping_ || !current_ || current_->phase != Phase::ready) return "the mount is not serving just now";
  if (!can_resend(state_->head().init))
    return "this kernel cannot pass a mount from one server to the next (Linux 6.9 or newer can)";
  return "";
}

void Supervisor::consider(UpgradeRequest request) {
  if (const std::string why = objection(); !why.empty()) return reply_upgrade(request.client.get(), why);
  auto server = ServerProcess::start(exec_launcher(request.program, options_), state_->fd(), open_versions_.get());
  if (!server.ok()) return reply_upgrade(request.client.get(), server.error().message);
  candidate_.emplace(Candidate{std::move(server).value(), std::move(request.program), std::move(request.client),
                               Clock::now() + kCandidatePatience});
}

void Supervisor::poll_candidate() {
  if (wait_for(candidate_->process.channel(), POLLIN, milliseconds(0))) {
    const auto message = hear(candidate_->process.channel());
    if (message.ok() && message->has_value() && (*message)->what == Say::opened) return take_over();
    const bool said_why = message.ok() && message->has_value() && (*message)->what == Say::failed;
    return drop_candidate(said_why ? (*message)->text : "its server ended before it could take over");
  }
  if (Clock::now() >= candidate_->deadline) drop_candidate("its server does not open the store");
}

void Supervisor::drop_candidate(const std::string& why) {
  log_warning("no upgrade to {}: {}", candidate_->program, why);
  candidate_->process.kill();
  candidate_->process.wait(kServerEndPatience);
  reply_upgrade(candidate_->client.get(), fmt::format("{}: {}", candidate_->program, why));
  candidate_.reset();
}

// The current server may have been lost meanwhile: then there is none to kill.
void Supervisor::take_over() {
  if (current_) {
    current_->process.kill();
    if (!current_->process.wait(kServerEndPatience)) return drop_candidate("the old server waits inside the kernel");
  }
  prepare_next();
  taken_over_ = std::move(candidate_->program);
  client_ = std::move(candidate_->client);
  current_.emplace(Current{std::move(candidate_->process), Phase::starting, requests().finished()});
  candidate_.reset();
  give_device();
}

// Executes the new program: all state is in descriptors. If that fails, the new server continues under this supervisor.
void Supervisor::become(const std::string& program, Fd client) {
  const std::array<int, 6> kept{device_.get(), state_->fd(), open_versions_.get(), current_->process.channel(),
                                door_->fd(),   client.get()};
  std::vector<std::string> words = to_words(options_);
  words.insert(words.begin(), "mount.weft");
  words.push_back(fmt::format("--supervise={},{}", fmt::join(kept, ","), current_->process.pid()));
  std::vector<char*> argv = argv_of(words);
  log_info("upgrading {} to {}", options_.directory, program);
  announcer_.stop();  // the new program starts its own
  log_flush();
  for (const int fd : kept) inherit(fd);
  ::execv(program.c_str(), argv.data());
  const Error failed = sys_error(errno, program);
  for (const int fd : kept) keep_private(fd);
  announcer_.begin(state_->head().announce, state_->fd());
  reply_upgrade(client.get(),
                fmt::format("the server is the new program's, its supervisor is not: {}", failed.message));
}

}  // namespace weft
