#include "os/kernel_file.h"

#include <fcntl.h>

#include <array>
#include <cstddef>

#include <fmt/core.h>

#include "os/sys.h"

namespace weft {

Result<std::string> read_kernel_file(const std::string& path, std::uint64_t bytes_max) {
  WEFT_TRY(const Fd file, open_file(path, O_RDONLY));
  std::string text;
  std::array<std::byte, 16 << 10> part{};
  for (;;) {
    WEFT_TRY(const std::size_t got, read_next(file.get(), part, path));
    if (got == 0) return text;
    text.append(reinterpret_cast<const char*>(part.data()), got);
    if (text.size() > bytes_max)
      return Error{Errc::invalid, fmt::format("{}: expected at most {} bytes", path, bytes_max)};
  }
}

}  // namespace weft
