#include "mount/served_mount.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/log.h"
#include "fuse/process/channel.h"
#include "fuse/process/supervisor.h"
#include "fuse/serve.h"
#include "weft/store/store.h"

namespace weft::testing {
namespace {

using Tree = std::function<std::unique_ptr<Vfs>()>;

// Clears a flag of the INIT request that the kernel sent, in the memory that supervisor and server share.
void take_away(std::uint32_t flag2, InitWords& words) {
  kernel::InitIn init{};
  std::memcpy(&init, words.request + sizeof(kernel::InHeader), sizeof init);
  init.flags2 &= ~flag2;
  std::memcpy(words.request + sizeof(kernel::InHeader), &init, sizeof init);
}

void take_resend_away(int state) {
  const auto shared = SharedState::attach(Fd(state));
  if (!shared.ok()) ::_exit(3);
  InitWords& words = shared->head().init;
  while (words.answered == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  take_away(kernel::kHasResendFlag2, words);
}

void pass_on(const Fd& from, int to) {
  for (;;) {
    const auto message = hear(from.get());
    if (!message.ok() || !*message) return;
    if ((*message)->what != Say::opened && !say(to, (*message)->what, (*message)->text).ok()) return;
  }
}

// The server has the device, and can answer, only once the offer is gone: what it and the supervisor say goes through
// here. Returns its end; `relay` runs as long as the server.
int take_passthrough_away(const ServerEnds& ends, std::thread& relay) {
  auto between = make_channel();
  if (!between.ok() || !say(ends.channel, Say::opened).ok()) ::_exit(3);
  const auto given = hear(ends.channel);
  const auto shared = SharedState::attach(Fd(::dup(ends.state)));
  if (!given.ok() || !*given || !shared.ok()) ::_exit(3);
  take_away(kernel::kPassthroughFlag2, shared->head().init);
  if (!say(between->supervisor.get(), Say::device, "", (*given)->device.get()).ok()) ::_exit(3);
  relay = std::thread(
      [to = ends.channel, from = std::make_shared<Fd>(std::move(between->supervisor))] { pass_on(*from, to); });
  return between->server.release();
}

// It has no new/.
class NobodyPublishes final : public PublishRights {
 public:
  Status may_publish(const UserIds& /*user*/) override { return Error{Errc::permission, "this tree is only read"}; }
};

class NoReports final : public MountReports {
 public:
  void report(const MountFigures& /*figures*/) override {}
};

[[noreturn]] void run_server(const Tree& tree, const MountOptions& options, Kernel kernel, const ServerEnds& ends) {
  std::thread pretender;
  ServerEnds own = ends;
  if (kernel == Kernel::without_resend) pretender = std::thread(take_resend_away, ::dup(ends.state));
  if (kernel == Kernel::without_passthrough) own.channel = take_passthrough_away(ends, pretender);
  const auto vfs = tree();
  NobodyPublishes rights;
  NoReports reports;
  ::_exit(serve(*vfs, rights, reports, nullptr, options, own).ok() ? 0 : 1);
}

[[noreturn]] void run_supervisor(const Tree& tree, const MountOptions& options, Kernel kernel, int report) {
  block_signals();
  if (!log_setup("", "error", "server").ok()) ::_exit(3);
  const auto start_server = [&](const ServerEnds& ends) -> Result<pid_t> {
    const pid_t pid = ::fork();
    if (pid == 0) run_server(tree, options, kernel, ends);
    return pid;
  };
  const Status served = Supervisor(options, start_server, Fd()).run([report] {
    if (::write(report, "+", 1) != 1) ::_exit(3);
  });
  const std::string& text = served.ok() ? std::string() : served.error().message;
  if (::write(report, text.data(), text.size()) < 0) ::_exit(3);
  ::_exit(served.ok() ? 0 : 1);
}

}  // namespace

bool can_mount() {
  return ::geteuid() == 0 && ::access("/dev/fuse", R_OK | W_OK) == 0;
}

ServedMount::ServedMount(const std::function<std::unique_ptr<Vfs>()>& tree, MountOptions options, Kernel kernel) {
  options.store = store_.path();
  options.directory = directory_.path();
  std::filesystem::create_directory(store_ / "index");
  std::ofstream(store_ / "weft-store") << "identity";
  std::ofstream(store_ / "index/data.mdb") << "index";
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    started_ = Error{Errc::io, "pipe"};
    return;
  }
  server_ = ::fork();
  if (server_ == 0) run_supervisor(tree, options, kernel, ends[1]);
  ::close(ends[1]);
  std::array<char, 512> buffer{};
  const ssize_t got = ::read(ends[0], buffer.data(), buffer.size());
  ::close(ends[0]);
  if (got <= 0 || buffer[0] != '+')
    started_ = Error{Errc::io, std::string(buffer.data(), static_cast<std::size_t>(got > 0 ? got : 0))};
}

ServedMount::~ServedMount() {
  if (server_ > 0) {
    signal(SIGTERM);
    wait();
  }
  ::umount2(directory_.path().c_str(), MNT_FORCE | MNT_DETACH);
}

void ServedMount::signal(int number) const {
  if (server_ > 0) ::kill(server_, number);
}

int ServedMount::wait() {
  int status = 0;
  if (server_ <= 0 || ::waitpid(server_, &status, 0) != server_) return -1;
  server_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace weft::testing
