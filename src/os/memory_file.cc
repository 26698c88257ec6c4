#include "os/memory_file.h"

#include <sys/mman.h>

#include <cerrno>

namespace weft {

Result<Fd> memory_file(const std::string& name) {
  Fd fd(::memfd_create("weft", MFD_CLOEXEC));
  if (!fd.valid()) return sys_error(errno, name + ": a file in memory");
  return fd;
}

}  // namespace weft
