// Reads a file as loaders do and measures the time: read_file HOW READERS FILE
// HOW is `read` (read(2), 1 MiB per call), `mmap` (one byte of each page, in order) or `touch` (one byte in the middle
// of a mapping). READERS processes read the whole file at once. Prints the seconds from before the first open to after
// the last byte.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "os/sys.h"

namespace {

using namespace weft;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kRequest = 1U << 20U;
constexpr std::size_t kPage = 4096;

Status read_all(int fd, const std::string& path) {
  static std::vector<std::byte> buffer(kRequest);
  WEFT_TRY(const auto facts, stat_fd(fd, path));
  std::uint64_t seen = 0;
  for (;;) {
    const ssize_t got = ::read(fd, buffer.data(), buffer.size());
    if (got < 0) return Error{Errc::io, path + ": read failed"};
    if (got == 0) break;
    seen += static_cast<std::uint64_t>(got);
  }
  if (seen != static_cast<std::uint64_t>(facts.st_size)) return Error{Errc::io, path + ": read short"};
  return {};
}

Status touch_pages(int fd, const std::string& path, bool all) {
  WEFT_TRY(const auto facts, stat_fd(fd, path));
  const auto size = static_cast<std::size_t>(facts.st_size);
  void* const map = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
  if (map == MAP_FAILED) return Error{Errc::io, path + ": mmap failed"};
  const auto* bytes = static_cast<const volatile std::byte*>(map);
  unsigned sum = 0;
  for (std::size_t at = all ? 0 : size / 2; at < size; at += all ? kPage : size)
    sum += std::to_integer<unsigned>(static_cast<std::byte>(bytes[at]));
  ::munmap(map, size);
  return sum == ~0U ? Status(Error{Errc::internal, "not a sum of bytes"}) : Status();
}

Status read_as(std::string_view how, const std::string& path) {
  WEFT_TRY(const Fd fd, open_file(path, O_RDONLY));
  if (how == "read") return read_all(fd.get(), path);
  return touch_pages(fd.get(), path, how == "mmap");
}

int report(const Status& status) {
  if (!status.ok()) std::fprintf(stderr, "read_file: %s\n", status.error().message.c_str());
  return status.ok() ? 0 : 1;
}

int read_together(std::string_view how, std::uint64_t readers, const std::string& path) {
  for (std::uint64_t i = 0; i < readers; ++i) {
    const pid_t child = ::fork();
    if (child < 0) return report(Error{Errc::internal, "no process to read with"});
    if (child == 0) ::_exit(report(read_as(how, path)));
  }
  int failed = 0;
  for (std::uint64_t i = 0; i < readers; ++i) {
    int status = 0;
    if (::wait(&status) < 0 || status != 0) failed = 1;
  }
  return failed;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view how = argc == 4 ? argv[1] : "";
  const std::uint64_t readers = argc == 4 ? parse_u64(argv[2]).value_or(0) : 0;
  if ((how != "read" && how != "mmap" && how != "touch") || readers == 0) {
    std::fprintf(stderr, "usage: read_file read|mmap|touch READERS FILE\n");
    return 2;
  }
  const auto begin = Clock::now();
  const int failed = readers == 1 ? report(read_as(how, argv[3])) : read_together(how, readers, argv[3]);
  if (failed == 0) std::printf("%.6f\n", std::chrono::duration<double>(Clock::now() - begin).count());
  return failed;
}
