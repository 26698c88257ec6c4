#include "mount/served_mount.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include "base/log.h"
#include "fuse/serve.h"

namespace weft::testing {
namespace {

[[noreturn]] void run_server(const std::function<std::unique_ptr<Vfs>()>& tree, const MountOptions& options,
                             int report) {
  block_stop_signals();
  if (!log_setup("", "error", "server").ok()) ::_exit(3);
  const auto vfs = tree();
  const Status served = serve(*vfs, options, [report] {
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

ServedMount::ServedMount(const std::function<std::unique_ptr<Vfs>()>& tree, MountOptions options) {
  options.store = directory_.path();
  options.directory = directory_.path();
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    started_ = Error{Errc::io, "pipe"};
    return;
  }
  server_ = ::fork();
  if (server_ == 0) run_server(tree, options, ends[1]);
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
