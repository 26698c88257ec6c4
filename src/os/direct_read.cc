#include "os/direct_read.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <utility>

#include <fmt/core.h>

namespace weft {

Fd open_direct(int fd) {
  struct statfs facts {};
  if (::fstatfs(fd, &facts) != 0 || facts.f_type == FUSE_SUPER_MAGIC) return {};
  auto opened = open_file(fmt::format("/proc/self/fd/{}", fd), O_RDONLY | O_DIRECT);
  return opened.ok() ? std::move(opened).value() : Fd();
}

std::optional<std::size_t> read_direct(int fd, std::uint64_t offset, std::span<std::byte> blocks) {
  std::size_t got = 0;
  while (got < blocks.size() && got % kDirectBlock == 0) {
    const ssize_t part = ::pread(fd, blocks.data() + got, blocks.size() - got, static_cast<off_t>(offset + got));
    if (part < 0) return {};
    if (part == 0) break;
    got += static_cast<std::size_t>(part);
  }
  return got;
}

}  // namespace weft
