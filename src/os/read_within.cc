#include "os/read_within.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include <fmt/core.h>

#include "os/sys.h"

namespace weft {
namespace {

// The body of the child process. It makes system calls only, as it must after a fork of a process with threads. Exits
// with 0 unless a read or a write failed.
[[noreturn]] void pass_on(const char* path, std::size_t bytes_max, int to) {
  const int from = ::open(path, O_RDONLY | O_CLOEXEC);
  char buffer[4096];
  ssize_t got = from < 0 ? -1 : 1;
  while (got > 0 && bytes_max > 0) {
    got = ::read(from, buffer, std::min(sizeof buffer, bytes_max));
    if (got > 0 && ::write(to, buffer, static_cast<std::size_t>(got)) != got) got = -1;
    if (got > 0) bytes_max -= static_cast<std::size_t>(got);
  }
  ::_exit(got < 0 ? 1 : 0);
}

// Appends everything from the pipe until the child closes it. Returns false at the deadline.
bool collect(int from, std::chrono::steady_clock::time_point deadline, std::string& text) {
  for (;;) {
    auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd ready{from, POLLIN, 0};
    if (left.count() <= 0 || ::poll(&ready, 1, static_cast<int>(left.count())) == 0) return false;
    char buffer[4096];
    const ssize_t got = ::read(from, buffer, sizeof buffer);
    if (got == 0) return true;
    if (got > 0) text.append(buffer, static_cast<std::size_t>(got));
    if (got < 0 && errno != EINTR) return true;
  }
}

}  // namespace

Result<std::string> read_file_within(const std::string& path, std::size_t bytes_max, std::chrono::milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return sys_error(errno, "pipe");
  Fd from(ends[0]);
  Fd to(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) return sys_error(errno, "fork");
  if (child == 0) pass_on(path.c_str(), bytes_max, to.get());
  to.reset();
  std::string text;
  if (!collect(from.get(), deadline, text)) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, WNOHANG);  // the child may hang in the kernel until the file answers
    return Error{Errc::busy, fmt::format("{}: expected an answer within {} ms, got none", path, limit.count())};
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return Error{Errc::io, fmt::format("{}: cannot be read", path)};
  return text;
}

}  // namespace weft
