#include "weft/bytes/window_memory.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/limits.h"
#include "os/sys.h"
#include "testing.h"

namespace weft {
namespace {

using testing::must;

// Reads 16 bytes through the kernel, as a read for a peer does. Empty if the kernel cannot read them.
std::string read_at(const std::byte* at) {
  std::string into(16, '?');
  const iovec local{into.data(), into.size()};
  const iovec remote{const_cast<std::byte*>(at), into.size()};
  if (::process_vm_readv(::getpid(), &local, 1, &remote, 1, 0) != static_cast<ssize_t>(into.size())) into.clear();
  return into;
}

TEST_CASE("a window shows a part of a file, wherever it begins") {
  const testing::TempDir directory;
  const auto bytes = testing::random_bytes(20'000, 1);
  testing::write_file(directory / "file", testing::as_text(bytes));
  const Fd file = must(open_file(directory / "file", O_RDONLY));
  auto owner = std::make_shared<int>(1);
  for (const std::uint64_t offset : {0, 1, 4096, 9'999}) {
    const auto window = must(WindowMemory::of_file(file.get(), offset, 5'000, owner));
    const auto wanted = std::span(bytes).subspan(offset, 5'000);
    CHECK(std::equal(wanted.begin(), wanted.end(), window->bytes().begin(), window->bytes().end()));
    CHECK(owner.use_count() == 2);
  }
  CHECK(owner.use_count() == 1);
  CHECK(!WindowMemory::of_file(file.get(), 0, 0, nullptr).ok());
  CHECK(!WindowMemory::of_bytes({}).ok());
}

TEST_CASE("a window of a file that has less is an error, not a window whose reading would fail") {
  const testing::TempDir directory;
  testing::write_file(directory / "file", std::string(8192, 'x'));
  const Fd file = must(open_file(directory / "file", O_RDONLY));
  auto owner = std::make_shared<int>(1);
  const auto window = WindowMemory::of_file(file.get(), 4096, 8192, owner);
  REQUIRE(!window.ok());
  CHECK(window.error().code == Errc::io);
  CHECK(owner.use_count() == 1);
}

TEST_CASE("a withdrawn window releases its memory, and its addresses read as zeros") {
  const std::string zeros(16, '\0');
  auto owner = std::make_shared<int>(1);
  const testing::TempDir directory;
  testing::write_file(directory / "file", std::string(8192, 'x'));
  const Fd file = must(open_file(directory / "file", O_RDONLY));
  auto window = must(WindowMemory::of_file(file.get(), 0, 8192, owner));
  const std::byte* const at = window->bytes().data();
  CHECK(read_at(at) == std::string(16, 'x'));
  window->withdraw();
  CHECK(owner.use_count() == 1);
  CHECK(read_at(at) == zeros);
  window.reset();
  for (int i = 0; i < 64; ++i) {
    const auto other = must(WindowMemory::of_bytes(testing::random_bytes(8192, 2)));
    CHECK(other->bytes().data() != at);
    CHECK(read_at(at) == zeros);
  }
}

TEST_CASE("copies for windows stay within their memory bound") {
  constexpr std::size_t kEach = 32U << 20U;
  const std::vector<std::byte> bytes(kEach);
  for (int round = 0; round < 2; ++round) {
    std::vector<std::unique_ptr<WindowMemory>> copies;
    for (std::uint64_t taken = 0; taken + kEach <= limits::kWindowCopiesMax; taken += kEach)
      copies.push_back(must(WindowMemory::of_bytes(bytes)));
    CHECK(WindowMemory::of_bytes(bytes).error().code == Errc::busy);
    copies.back()->withdraw();
    CHECK(WindowMemory::of_bytes(bytes).ok());
  }
}

}  // namespace
}  // namespace weft
