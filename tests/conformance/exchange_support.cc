#include "exchange_support.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include "os/sys.h"

namespace weft::conformance {

void KeyFile::set_mode(unsigned mode) const {
  REQUIRE(::chmod(path_.c_str(), mode) == 0);
}

Result<std::unique_ptr<WindowMemory>> ScriptedServer::window_on_file() const {
  const testing::TempDir directory;
  testing::write_file(directory / "content", testing::as_text(content));
  WEFT_TRY(const Fd file, open_file(directory / "content", O_RDONLY));
  return WindowMemory::of_file(file.get(), 0, content.size(), nullptr);
}

Result<std::vector<std::byte>> read_all(Exchange& exchange, Answer& answer, std::size_t window) {
  std::vector<std::byte> out;
  while (out.size() < answer.length(window)) {
    const auto length = std::min<std::size_t>(kLandingBufferBytes, answer.length(window) - out.size());
    WEFT_TRY(const LandingBuffer buffer, exchange.landing(soon()));
    WEFT_TRY(const WindowRead read, answer.read(window, out.size(), buffer.landing(), 0, length));
    WEFT_CHECK(read->wait(soon()));
    const auto came = buffer.bytes().first(length);
    out.insert(out.end(), came.begin(), came.end());
  }
  return out;
}

}  // namespace weft::conformance
