#include "os/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/log.h"
#include "os/file_ops.h"

namespace weft {
namespace {

Result<Fd> make_file(const std::string& name, unsigned flags) {
  Fd fd(::memfd_create("weft", MFD_CLOEXEC | flags));
  if (!fd.valid()) return sys_error(errno, name + ": a file in memory");
  return fd;
}

}  // namespace

Result<Fd> memory_file(const std::string& name) {
  return make_file(name, 0);
}

Result<Fd> memory_file(const std::string& name, std::span<const std::byte> bytes) {
  WEFT_TRY(Fd fd, memory_file(name));
  WEFT_CHECK(write_exact(fd.get(), 0, bytes, name));
  return fd;
}

// The mode keeps other users from opening the file again for writing, by way of their descriptor. The seals keep
// this process's user from it too. The size is not sealed: the destructor shrinks the file.
Result<std::unique_ptr<LentMemory>> LentMemory::make(const std::string& name, std::span<const std::byte> bytes) {
  WEFT_TRY(Fd own, make_file(name, MFD_ALLOW_SEALING));
  WEFT_CHECK(write_exact(own.get(), 0, bytes, name));
  WEFT_CHECK(set_mode(own.get(), 0400, name));
  WEFT_TRY(Fd lent, open_descriptor(own.get()));
  if (::fcntl(own.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return sys_error(errno, name + ": sealing a file in memory");
  return std::unique_ptr<LentMemory>(new LentMemory(std::move(own), std::move(lent)));
}

LentMemory::~LentMemory() {
  if (::ftruncate(own_.get(), 0) != 0) log_warning("{}", sys_error(errno, "emptying a file in memory").message);
}

std::string message_in(const Fd& file) {
  constexpr std::size_t kMessageMax = 4096;
  std::array<char, kMessageMax> text{};
  const off_t end = ::lseek(file.get(), 0, SEEK_END);
  const ssize_t got = ::pread(file.get(), text.data(), text.size(), std::max<off_t>(end - off_t{kMessageMax}, 0));
  return {text.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0))};
}

}  // namespace weft
