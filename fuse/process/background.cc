#include "fuse/process/background.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <span>
#include <string>

#include "base/log.h"
#include "os/sys.h"

namespace weft {
namespace {

constexpr char kReady = '\0';  // the child writes this when the mount answers, or else its error
constexpr std::size_t kOutcomeBytesMax = 4096;

void leave_session() {
  ::setsid();
  const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(null.get(), fd);
}

[[noreturn]] void run_child(Fd report, const std::function<Status(const std::function<void()>&)>& work) {
  if (::chdir("/") != 0) ::_exit(1);
  const auto ready = [&report] {
    leave_session();
    if (!append_exact(report.get(), std::as_bytes(std::span(&kReady, 1)), "pipe").ok())
      log_warning("the command that started the mount has ended before the mount answered");
    report.reset();
  };
  const Status status = work(ready);
  if (!status.ok()) {
    if (!report.valid())
      log_error("{}", status.error().message);
    else if (!append_exact(report.get(), std::as_bytes(std::span(status.error().message)), "pipe").ok())
      ::_exit(1);
  }
  log_flush();
  ::_exit(status.ok() ? 0 : 1);
}

std::string read_report(int fd) {
  std::array<char, kOutcomeBytesMax> buffer{};
  std::string out;
  while (out.size() < kOutcomeBytesMax) {
    const auto got = read_next(fd, std::as_writable_bytes(std::span(buffer)), "pipe");
    if (!got.ok() || *got == 0) break;
    out.append(buffer.data(), *got);
  }
  return out;
}

}  // namespace

Status run_in_background(const std::function<Status(const std::function<void()>& ready)>& work) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return sys_error(errno, "pipe to the background");
  const Fd from_child(ends[0]);
  Fd to_parent(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) return sys_error(errno, "going to the background");
  if (child == 0) run_child(std::move(to_parent), work);
  to_parent.reset();
  const std::string report = read_report(from_child.get());
  if (report == std::string(1, kReady)) return {};
  ::waitpid(child, nullptr, 0);
  if (report.empty()) return Error{Errc::internal, "the server ended before the mount answered"};
  return Error{Errc::io, report};
}

}  // namespace weft
