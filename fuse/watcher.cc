#include "fuse/watcher.h"

#include <malloc.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <string>
#include <utility>

#include "base/json.h"
#include "base/log.h"
#include "fuse/ops/read_buffer.h"
#include "fuse/process/channel.h"
#include "fuse/process/mounting.h"
#include "fuse/process/supervisor.h"
#include "os/mounts.h"
#include "os/unix_socket.h"
#include "weft/store/store.h"

namespace weft {
namespace {

constexpr int kWakeSignal = SIGUSR1;  // only interrupts a system call
constexpr std::chrono::milliseconds kWakeEvery{20};
constexpr int kPollEveryMs = 5000;
constexpr unsigned kIdlePollsMax = 4;

void ignore_signal(int) {}

void install_signal_actions() {
  struct sigaction action {};
  action.sa_handler = ignore_signal;  // without SA_RESTART: interrupted calls return
  ::sigaction(kWakeSignal, &action, nullptr);
  action.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &action, nullptr);
}

// The members of "mount" in .weft/status; os/mounts.h reads some of them.
std::string status_members(const Server& server, const Status& read_ahead, bool supervised) {
  const SharedHead& head = server.shared.head();
  const bool passthrough = server.passthrough.active();
  JsonWriter json;
  json.begin_object().member("directory", server.options.directory);
  json.member("pid", static_cast<std::uint64_t>(::getpid()));
  if (supervised) json.member("supervisor_pid", static_cast<std::uint64_t>(head.supervisor_pid));
  if (!supervised) json.member("supervisor_problem", "the supervisor is gone: no server follows this one");
  json.member("pid_namespace", pid_namespace());
  if (supervised) json.member("control", shared_text(head.control));
  json.member("restarts", std::uint64_t{head.restarts});
  if (head.restarts != 0) json.member("last_restart", shared_text(head.last_loss));
  if (!can_resend(head.init)) json.member("restart_problem", "needs Linux 6.9: a lost server ends the mount");
  if (server.draft_space) json.member("drafts_max", server.draft_space->bytes_max());
  json.member("mode", passthrough ? "passthrough" : "cached");
  if (!passthrough) json.member("mode_reason", server.passthrough.reason());
  if (const auto refused = server.open_files.refused(); refused.opens != 0)
    json.member("passthrough_refused", refused.opens).member("passthrough_problem", refused.problem);
  if (read_ahead.ok())
    json.member("read_ahead_kb", std::uint64_t{kReadAheadKilobytes});
  else
    json.member("read_ahead_problem", read_ahead.error().message);
  json.end_object();
  const std::string text = json.take();
  return text.substr(1, text.size() - 2);
}

MountFigures figures_of(const Server& server) {
  const SharedHead& head = server.shared.head();
  return {.id = shared_text(head.mount_id),
          .directory = server.options.directory,
          .passthrough = server.passthrough.active(),
          .passthrough_refused = server.open_files.refused().opens,
          .restarts = head.restarts,
          .requests = server.requests.answered()};
}

}  // namespace

Status Watcher::start() {
  install_signal_actions();
  WEFT_TRY(signals_, open_signals());
  if (!ended_.valid() || !server_.exchange.answered().valid())
    return Error{Errc::io, "a pipe cannot be made: no file descriptor is left"};
  publish_status();  // requests may come before set_up() is done
  thread_ = std::thread([this] { run(); });
  return {};
}

void Watcher::loop_ended() {
  ended_.ring();
}

void Watcher::join() {
  if (thread_.joinable()) thread_.join();
}

void Watcher::publish_status() {
  server_.vfs.set_mount_status([this, members = status_members(server_, read_ahead_, channel_ >= 0)] {
    const RequestLog& log = server_.requests;
    // The counters have a fixed width: reading the status raises them, but its size was reported before.
    return fmt::format(R"({}, "requests": {:<20}, "reads": {:<20}, "writes": {:<20})", members, log.begun(),
                       log.reads(), log.writes());
  });
}

// False if the loop ended before the mount could answer.
bool Watcher::wait_for_init() const {
  std::array<pollfd, 2> events{pollfd{ended_.fd(), POLLIN, 0}, pollfd{server_.exchange.answered().fd(), POLLIN, 0}};
  while (::poll(events.data(), events.size(), -1) < 0) {
  }
  return events[0].revents == 0;
}

void Watcher::set_up() {
  if (!wait_for_init()) return;
  server_.passthrough.probe(server_.device, index_file(server_.options.store));
  read_ahead_ = set_read_ahead(server_.device, server_.shared.head(), kReadAheadKilobytes);
  publish_status();
  assemble();
  if (!read_ahead_.ok()) log_warning("readahead: {}", read_ahead_.error().message);
  if (!server_.passthrough.active()) log_warning("no passthrough: {}", server_.passthrough.reason());
  log_info("serving {} at {}", server_.options.store, server_.options.directory);
  server_.open_files.reopen();
  begin_announcing();
  if (!say(channel_, Say::ready).ok()) lose_supervisor();
}

// Commits from here on are announced, so a process may watch as soon as the mount answers.
void Watcher::begin_announcing() {
  AnnounceWords& words = server_.shared.head().announce;
  if (!server_.options.announce || words.begun != 0) return;
  const auto position = server_.vfs.position();
  if (!position.ok()) return log_error("nothing is announced: {}", position.error().message);
  words.position = *position;
  words.begun = 1;
}

// Assembling only pays off with passthrough: the kernel reads an assembled file faster than its parts.
void Watcher::assemble() {
  if (!server_.passthrough.active()) return server_.vfs.assemble_nothing(server_.passthrough.reason());
  server_.vfs.assemble({server_.options.assembly_cache_max}, [this](Ino ino) { reconsider_node(server_, ino); });
}

void Watcher::lose_supervisor() {
  channel_ = -1;
  log_warning("the supervisor of {} is gone; this server goes on alone", server_.options.directory);
  publish_status();
}

// False if the server should end.
bool Watcher::take_signals() {
  if (take_signal(signals_.get()) != Told::stop) return true;
  if (channel_ >= 0 && say(channel_, Say::stop).ok()) return true;
  unmount(server_.options, server_.shared.head());
  return false;
}

// Trims caches, and reports. While the mount is idle, returns memory to the system for some looks, until the caches
// have expired.
void Watcher::rest() {
  server_.vfs.trim();
  server_.listings.trim();
  if (const std::uint64_t refused = server_.open_files.refused().opens; refused != std::exchange(refused_, refused))
    publish_status();
  reports_.report(figures_of(server_));
  const std::uint64_t begun = server_.requests.begun();
  idle_polls_ = begun == begun_ ? idle_polls_ + 1 : 0;
  begun_ = begun;
  if (idle_polls_ < 1 || idle_polls_ > kIdlePollsMax) return;
  trim_read_buffers();
  ::malloc_trim(0);
}

// Ends the loop. Interrupts its thread until the loop has ended: it may be about to sleep.
void Watcher::end_loop() {
  session_.stop();
  do {
    ::pthread_kill(loop_thread_, kWakeSignal);
  } while (!wait_for(ended_.fd(), POLLIN, kWakeEvery));
}

void Watcher::run() {
  set_up();
  for (;;) {
    std::array<pollfd, 3> events{pollfd{ended_.fd(), POLLIN, 0}, pollfd{signals_.get(), POLLIN, 0},
                                 pollfd{channel_, POLLIN, 0}};
    const int count = ::poll(events.data(), events.size(), kPollEveryMs);
    if (events[0].revents != 0) return;
    if (events[1].revents != 0 && !take_signals()) return end_loop();
    if (events[2].revents != 0) lose_supervisor();  // nothing more comes from it
    if (count == 0) rest();
  }
}

}  // namespace weft
