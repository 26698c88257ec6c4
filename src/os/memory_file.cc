#include "os/memory_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace weft {

Result<Fd> memory_file(const std::string& name) {
  Fd fd(::memfd_create("weft", MFD_CLOEXEC));
  if (!fd.valid()) return sys_error(errno, name + ": a file in memory");
  return fd;
}

Result<Fd> memory_file(const std::string& name, std::span<const std::byte> bytes) {
  WEFT_TRY(Fd fd, memory_file(name));
  WEFT_CHECK(write_exact(fd.get(), 0, bytes, name));
  return fd;
}

std::string message_in(const Fd& file) {
  constexpr std::size_t kMessageMax = 4096;
  std::array<char, kMessageMax> text{};
  const ssize_t got = ::pread(file.get(), text.data(), text.size(), 0);
  return {text.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0))};
}

}  // namespace weft
