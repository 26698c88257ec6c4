#include "serve.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <string>
#include <thread>

#include "base/json.h"
#include "base/log.h"
#include "base/sys.h"
#include "mountpoint.h"
#include "server.h"
#include "session.h"

namespace weft {
namespace {

constexpr int kWakeSignal = SIGUSR1;  // does nothing but interrupt a system call
constexpr int kWakeEveryMs = 20;

sigset_t stop_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, number);
  return set;
}

void ignore_signal(int) {}

void install_signal_actions() {
  struct sigaction action {};
  action.sa_handler = ignore_signal;  // without SA_RESTART: what it interrupts returns
  ::sigaction(kWakeSignal, &action, nullptr);
  action.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &action, nullptr);
}

std::string status_members(const Server& server, const Status& read_ahead) {
  const bool passthrough = server.passthrough.active();
  JsonWriter json;
  json.begin_object();
  json.member("directory", server.options.directory);
  json.member("pid", static_cast<std::uint64_t>(::getpid()));
  json.member("mode", passthrough ? "passthrough" : "cached");
  if (!passthrough) json.member("mode_reason", server.passthrough.reason());
  if (read_ahead.ok())
    json.member("read_ahead_kb", std::uint64_t{kReadAheadKilobytes});
  else
    json.member("read_ahead_problem", read_ahead.error().message);
  json.end_object();
  const std::string text = json.take();
  return text.substr(1, text.size() - 2);
}

// Beside the loop, on a thread of its own: waits until the mount answers and sets it up, then waits for a signal to
// stop, or for the loop to have ended.
class Watcher {
 public:
  Watcher(Session& session, Server& server, const std::function<void()>& ready)
      : session_(session), server_(server), ready_(ready), loop_thread_(::pthread_self()) {}
  ~Watcher() { join(); }
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  Status start();
  void loop_ended() { ::eventfd_write(ended_.get(), 1); }
  void join() {
    if (thread_.joinable()) thread_.join();
  }
  bool stopped() const { return stopped_; }

 private:
  void run();
  void set_up();
  void assemble();
  bool wait_for_signal();

  Session& session_;
  Server& server_;
  const std::function<void()>& ready_;
  pthread_t loop_thread_;
  Fd signals_;
  Fd ended_;
  std::atomic<bool> stopped_{false};
  std::thread thread_;
};

Status Watcher::start() {
  const sigset_t set = stop_signals();
  signals_ = Fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  ended_ = Fd(::eventfd(0, EFD_CLOEXEC));
  if (!signals_.valid() || !ended_.valid()) return Error{Errc::io, "no descriptor to wait for signals"};
  thread_ = std::thread([this] { run(); });
  return {};
}

void Watcher::set_up() {
  if (!stat_file(server_.options.directory).ok()) return;  // the loop has ended already
  server_.passthrough.probe(server_.device);
  const Status read_ahead = set_read_ahead(server_.options.directory, kReadAheadKilobytes);
  server_.vfs.set_mount_status(status_members(server_, read_ahead));
  assemble();
  if (!read_ahead.ok()) log_warning("readahead: {}", read_ahead.error().message);
  if (!server_.passthrough.active()) log_warning("no passthrough: {}", server_.passthrough.reason());
  log_info("serving {} at {}", server_.options.store, server_.options.directory);
  ready_();
}

// Only the kernel reads an assembled file faster than its parts.
void Watcher::assemble() {
  if (!server_.passthrough.active()) return server_.vfs.assemble_nothing(server_.passthrough.reason());
  server_.vfs.assemble({server_.options.assembly_cache_max}, [this](Ino ino) { reconsider_node(server_, ino); });
}

// False when the loop ended by itself.
bool Watcher::wait_for_signal() {
  std::array<pollfd, 2> events{pollfd{ended_.get(), POLLIN, 0}, pollfd{signals_.get(), POLLIN, 0}};
  while (::poll(events.data(), events.size(), -1) < 0) {
  }
  return events[0].revents == 0;
}

void Watcher::run() {
  set_up();
  if (!wait_for_signal()) return;
  stopped_ = true;
  session_.stop();
  // The loop may be just about to sleep: wake it until it has seen the request.
  pollfd ended{ended_.get(), POLLIN, 0};
  do {
    ::pthread_kill(loop_thread_, kWakeSignal);
  } while (::poll(&ended, 1, kWakeEveryMs) <= 0);
}

}  // namespace

void block_stop_signals() {
  const sigset_t set = stop_signals();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

Status serve(Vfs& vfs, const MountOptions& options, const std::function<void()>& ready) {
  install_signal_actions();
  WEFT_TRY(SharedState shared, SharedState::make());
  Server server(vfs, options, shared);
  Session session(server);
  WEFT_CHECK(session.mount());
  server.open_files.set_device(server.device);
  Watcher watcher(session, server, ready);
  Status served = server.notifier.start(session.kernel_cache());
  if (served.ok()) served = watcher.start();
  if (served.ok()) served = session.loop();
  watcher.loop_ended();
  if (watcher.stopped() || !served.ok()) session.unmount();
  watcher.join();
  vfs.stop_assembling();
  server.notifier.stop();
  log_info("{} is no longer mounted", options.directory);
  return served;
}

}  // namespace weft
