#include "os/open_beneath.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace weft {
namespace {

constexpr int kOpenAttempts = 16;

std::uint64_t bits_of(Resolve resolve) {
  switch (resolve) {
    case Resolve::no_links:
      return RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
    case Resolve::no_links_no_mounts:
      return RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV;
    case Resolve::links_within:
      return RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
    case Resolve::in_cache:
      return RESOLVE_CACHED;
  }
  return RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV;
}

}  // namespace

Result<Fd> open_beneath(int directory, const std::string& path, int flags, mode_t mode, Resolve resolve) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags | O_CLOEXEC);
  how.mode = (flags & O_CREAT) != 0 ? mode : 0;
  how.resolve = bits_of(resolve);
  for (int attempt = 0;;) {
    const long fd = ::syscall(SYS_openat2, directory, path.c_str(), &how, sizeof how);
    if (fd >= 0) return Fd(static_cast<int>(fd));
    if (errno == EINTR) continue;
    if (errno != EAGAIN || attempt == kOpenAttempts) return sys_error(errno, path);
    ++attempt;
  }
}

}  // namespace weft
