#include "fuse/process/supervisor.h"

#include <fmt/core.h>
#include <poll.h>
#include <pthread.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <syslog.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

#include "base/log.h"
#include "fuse/process/channel.h"
#include "fuse/process/mounting.h"
#include "os/unix_socket.h"

namespace weft {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr unsigned kPollsPerStall = 12;
constexpr char kNoResend[] = "the kernel does not send again what a lost server left (Linux 6.9 or newer does)";

sigset_t our_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, number);
  return set;
}

bool ended_well(int wait_status) {
  return WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0;
}

}  // namespace

void block_signals() {
  const sigset_t set = our_signals();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

Result<Fd> open_signals() {
  const sigset_t set = our_signals();
  Fd signals(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals.valid()) return sys_error(errno, "waiting for signals");
  return signals;
}

Told take_signal(int signals) {
  signalfd_siginfo signal{};
  if (::read(signals, &signal, sizeof signal) != sizeof signal) return Told::nothing;
  if (signal.ssi_signo != SIGHUP) return Told::stop;
  log_reopen();
  return Told::reopen_log;
}

void reopen_log_at_hangup() {
  struct sigaction action {};
  action.sa_handler = [](int) { log_reopen(); };
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGHUP, &action, nullptr);
  sigset_t hangup;
  sigemptyset(&hangup);
  sigaddset(&hangup, SIGHUP);
  ::pthread_sigmask(SIG_UNBLOCK, &hangup, nullptr);
}

Supervisor::Supervisor(MountOptions options, Launcher launcher, Fd open_versions, AnnouncerLauncher announcer)
    : options_(std::move(options)),
      launcher_(std::move(launcher)),
      open_versions_(std::move(open_versions)),
      announcer_(std::move(announcer)),
      stall_(seconds(options_.stall_s)) {}

Status Supervisor::run(const std::function<void()>& ready, Fd passed) {
  ready_ = ready;
  WEFT_TRY(signals_, open_signals());
  WEFT_TRY(SharedState state, SharedState::make());
  state_.emplace(std::move(state));
  SharedHead& head = state_->head();
  head.supervisor_pid = ::getpid();
  WEFT_TRY(auto server, open_store_first());
  auto device = passed.valid() ? adopt_mount(std::move(passed), options_, head) : mount_new(options_, head);
  if (!device.ok()) {
    server.kill();
    server.wait(kServerEndPatience);
    return std::move(device).error();
  }
  device_ = std::move(device).value();
  open_door();
  current_.emplace(Current{std::move(server), Phase::starting, 0});
  give_device();
  return supervise();
}

Status Supervisor::resume(const InheritedEnds& inherited) {
  device_ = Fd(inherited.device);
  door_.emplace(Fd(inherited.door));
  const Fd client(inherited.client);
  WEFT_TRY(signals_, open_signals());
  WEFT_TRY(SharedState state, SharedState::attach(Fd(inherited.state)));
  state_.emplace(std::move(state));
  WEFT_TRY(auto server, ServerProcess::adopt(inherited.server_pid, Fd(inherited.channel)));
  current_.emplace(Current{std::move(server), Phase::ready, requests().finished()});
  reply_upgrade(client.get(), "");
  log_info("this program now holds the mount {}", options_.directory);
  announcer_.begin(state_->head().announce, state_->fd());
  return supervise();
}

// Runs before the mount, so that a server that cannot serve reports its error to the mounting user and leaves no trace.
Result<ServerProcess> Supervisor::open_store_first() {
  WEFT_TRY(auto server, ServerProcess::start(launcher_, state_->fd(), open_versions_.get()));
  std::array<pollfd, 3> events{pollfd{server.channel(), POLLIN, 0}, pollfd{server.exit_fd(), POLLIN, 0},
                               pollfd{signals_.get(), POLLIN, 0}};
  Told told = Told::nothing;
  while (::poll(events.data(), events.size(), -1) < 0 ||
         (events[2].revents != 0 && (told = take_signal(signals_.get())) != Told::stop)) {
  }
  if (told == Told::stop) {
    server.kill();
    server.wait(kServerEndPatience);
    return Error{Errc::cancelled, "stopped before the mount came up"};
  }
  WEFT_TRY(const auto message, hear(server.channel()));
  if (message && message->what == Say::opened) return server;
  const auto status = server.wait(kServerEndPatience);
  if (message) return Error{Errc::io, message->text};
  return Error{Errc::internal, fmt::format("the server {}", status ? describe_end(*status) : "does not answer")};
}

void Supervisor::open_door() {
  auto door = UpgradeDoor::make();
  const auto name = door.ok() ? door->name() : Result<std::string>(door.error());
  if (!name.ok()) return log_warning("no upgrades: {}", name.error().message);
  set_shared_text(state_->head().control, *name);
  door_.emplace(std::move(door).value());
}

Status Supervisor::supervise() {
  stall_.restart(Clock::now());
  while (!over_) {
    wait_for_events();
    const Told told = take_signal(signals_.get());
    if (told == Told::stop) stop("a signal");
    if (told == Told::reopen_log) reopen_logs();
    if (undead_ && undead_->wait(milliseconds(0))) undead_.reset();
    poll_current();
    if (!over_) check_stall();
    if (!over_) announcer_.poll();
    if (!over_) poll_upgrades();
  }
  log_info("{} is no longer served", options_.directory);
  return outcome_;
}

void Supervisor::wait_for_events() {
  const auto fd_of = [](const auto& place, auto get) { return place ? get(*place) : -1; };
  std::array<pollfd, 8> events{};
  const std::array<int, 8> fds{
      signals_.get(),
      announcer_.exit_fd(),
      fd_of(door_, [](const UpgradeDoor& door) { return door.fd(); }),
      fd_of(current_, [](const Current& current) { return current.deaf ? -1 : current.process.channel(); }),
      fd_of(current_, [](const Current& current) { return current.process.exit_fd(); }),
      fd_of(candidate_, [](const Candidate& candidate) { return candidate.process.channel(); }),
      fd_of(candidate_, [](const Candidate& candidate) { return candidate.process.exit_fd(); }),
      fd_of(undead_, [](const ServerProcess& process) { return process.exit_fd(); })};
  for (std::size_t i = 0; i < fds.size(); ++i) events[i] = {fds[i], POLLIN, 0};
  ::poll(events.data(), events.size(), static_cast<int>(until_next_poll().count()));
}

milliseconds Supervisor::until_next_poll() const {
  milliseconds wait = options_.stall_s == 0 ? seconds(60) : milliseconds(seconds(options_.stall_s)) / kPollsPerStall;
  const auto shorten = [&wait, now = Clock::now()](Clock::time_point end) {
    wait = std::min(wait, std::max(milliseconds(0), std::chrono::ceil<milliseconds>(end - now)));
  };
  if (!current_) shorten(next_start_);
  if (candidate_) shorten(candidate_->deadline);
  if (const auto next = announcer_.next_poll()) shorten(*next);
  if (stopping_) shorten(stop_deadline_);
  return wait;
}

void Supervisor::poll_current() {
  if (!current_) {
    if (stopping_)
      over_ = true;
    else if (Clock::now() >= next_start_)
      start_next();
    return;
  }
  while (!current_->deaf && wait_for(current_->process.channel(), POLLIN, milliseconds(0))) hear_current();
  if (const auto status = current_->process.wait(milliseconds(0))) return lost(*status);
  if (!stopping_ || Clock::now() < stop_deadline_) return;
  log_warning("the server {} did not end with its mount; it is killed", current_->process.pid());
  current_->process.kill();
  current_->process.wait(kServerEndPatience);
  over_ = true;
}

void Supervisor::hear_current() {
  const auto message = hear(current_->process.channel());
  if (!message.ok() || !message->has_value()) {
    current_->deaf = true;  // it is about to exit
    return;
  }
  switch ((*message)->what) {
    case Say::opened:
      return give_device();
    case Say::ready:
      return server_is_ready();
    case Say::stop:
      return stop("a signal to the server");
    case Say::failed:
      current_->failure = (*message)->text;
      return;
    case Say::device:
      return;
  }
}

void Supervisor::server_is_ready() {
  current_->phase = Phase::ready;
  if (state_->head().generation != 0)
    log_info("server {} goes on with {}", current_->process.pid(), options_.directory);
  if (ready_) std::exchange(ready_, nullptr)();
  announcer_.begin(state_->head().announce, state_->fd());
  if (!taken_over_.empty() && !stopping_) become(std::exchange(taken_over_, {}), std::move(client_));
}

void Supervisor::give_device() {
  current_->phase = Phase::given_device;
  if (const Status said = say(current_->process.channel(), Say::device, "", device_.get()); !said.ok())
    log_warning("{}", said.error().message);  // a server that ended is noticed elsewhere
}

Loss Supervisor::describe_loss(int wait_status) const {
  return {WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGKILL, current_->phase == Phase::ready,
          requests().finished() - current_->finished_before, requests().running()};
}

void Supervisor::lost(int wait_status) {
  const Loss loss = describe_loss(wait_status);
  std::string reason = fmt::format("server {} {}", current_->process.pid(), describe_end(wait_status));
  if (!current_->failure.empty()) reason += ": " + current_->failure;
  current_.reset();
  if (disconnected(device_.get()) || stopping_) {
    over_ = true;
    return;
  }
  if (ended_well(wait_status)) return stop("the server's end");
  log_error("{}", reason);
  if (!taken_over_.empty()) {  // the next server runs our own program again
    taken_over_.clear();
    reply_upgrade(client_.get(), "the new program's " + reason);
    client_.reset();
  }
  if (!can_resend(state_->head().init)) return give_up(fmt::format("{}, and {}", reason, kNoResend));
  if (!policy_.go_on(loss)) return give_up(fmt::format("one server after another got nowhere; the last: {}", reason));
  set_shared_text(state_->head().last_loss, reason);
  ++state_->head().restarts;
  next_start_ = Clock::now() + policy_.pause();
}

void Supervisor::prepare_next() {
  requests().clear();
  ++state_->head().generation;
  stall_.restart(Clock::now());
}

void Supervisor::start_next() {
  if (disconnected(device_.get())) {
    over_ = true;
    return;
  }
  prepare_next();
  auto server = ServerProcess::start(launcher_, state_->fd(), open_versions_.get());
  if (!server.ok()) return give_up(server.error().message);
  current_.emplace(Current{std::move(server).value(), Phase::starting, requests().finished()});
}

// A server that survives SIGKILL hangs in the kernel on a disk. A second server may work all the same. If that one
// stalls too, a third server would not help, so it is not killed.
void Supervisor::check_stall() {
  if (!current_ || stopping_) return;
  const bool work_waits = current_->phase != Phase::ready || requests_wait(device_.get()) ||
                          !requests().running().empty() || current_->process.stopped();
  if (!stall_.stalled(Clock::now(), requests().finished(), work_waits) || undead_ || current_->process.traced()) return;
  log_error("server {} has answered nothing for {} s; it is killed", current_->process.pid(), options_.stall_s);
  current_->process.kill();
  if (const auto status = current_->process.wait(kServerEndPatience)) return lost(*status);
  undead_.emplace(std::move(current_->process));
  lost(SIGKILL);
}

// A server that is not ready has just opened its log.
void Supervisor::reopen_logs() {
  log_info("{} stays mounted: the log was reopened", options_.directory);
  if (current_ && current_->phase == Phase::ready) ::kill(current_->process.pid(), SIGHUP);
  announcer_.reopen_log();
}

// The server of a mount ends with the mount. A mount of another process stays, so its server is killed.
void Supervisor::stop(std::string_view why) {
  if (stopping_) return;
  stopping_ = true;
  announcer_.stop();
  stop_deadline_ = Clock::now() + kServerEndPatience;
  log_info("{} {}: {}", unmounts() ? "unmounting" : "no longer serving", options_.directory, why);
  unmount(options_, state_->head());
  if (!unmounts() && current_) current_->process.kill();
}

void Supervisor::give_up(std::string reason) {
  outcome_ = Error{Errc::internal, fmt::format("{}: {}: {}", options_.directory,
                                               unmounts() ? "unmounted" : "no longer served", reason)};
  // In the background, the caller logs this error; in the foreground it goes to stderr.
  if (options_.foreground && !options_.log_file.empty()) log_error("{}", outcome_.error().message);
  if (!options_.foreground) ::syslog(LOG_DAEMON | LOG_ERR, "mount.weft: %s", outcome_.error().message.c_str());
  unmount(options_, state_->head());
  over_ = true;
}

}  // namespace weft
