#include "os/direct_read.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "cold_file.h"
#include "os/page_cache.h"
#include "testing.h"

using namespace weft;
using namespace weft::testing;

namespace {

constexpr std::uint64_t kSize = 5 * kDirectBlock + 100;

struct Freed {
  void operator()(std::byte* memory) const { std::free(memory); }
};

}  // namespace

TEST_CASE("the whole blocks around a range") {
  CHECK(direct_blocks(0, 1).begin == 0);
  CHECK(direct_blocks(0, 1).length == kDirectBlock);
  CHECK(direct_blocks(kDirectBlock, kDirectBlock).begin == kDirectBlock);
  CHECK(direct_blocks(kDirectBlock, kDirectBlock).length == kDirectBlock);
  CHECK(direct_blocks(2 * kDirectBlock - 1, 2).begin == kDirectBlock);
  CHECK(direct_blocks(2 * kDirectBlock - 1, 2).length == 2 * kDirectBlock);
}

TEST_CASE("blocks are read up to the end of the file, and leave no pages behind") {
  TempDir dir;
  const Fd fd = cold_file(dir, kSize);
  const Fd direct = fd.valid() ? open_direct(fd.get()) : Fd();
  if (!direct.valid()) {
    MESSAGE("not tried: nothing can be read past the page cache here");
    return;
  }
  const auto expected = random_bytes(kSize, 1);
  REQUIRE(write_exact(fd.get(), 0, expected, "file").ok());
  REQUIRE(sync_file(fd.get(), "file").ok());
  forget_pages(fd.get(), 0, kSize);
  const std::unique_ptr<std::byte, Freed> memory(
      static_cast<std::byte*>(std::aligned_alloc(kDirectBlock, 8 * kDirectBlock)));
  const auto all = read_direct(direct.get(), 0, {memory.get(), 8 * kDirectBlock});
  REQUIRE(all == kSize);
  CHECK(std::equal(expected.begin(), expected.end(), memory.get()));
  const auto some = read_direct(direct.get(), 2 * kDirectBlock, {memory.get(), kDirectBlock});
  REQUIRE(some == kDirectBlock);
  CHECK(std::equal(memory.get(), memory.get() + kDirectBlock, expected.begin() + 2 * kDirectBlock));
  CHECK(*cached_pages(fd.get(), 0, kSize) == 0);
}

TEST_CASE("read_direct() returns nothing, without an error, if O_DIRECT is impossible") {
  TempDir dir;
  auto opened = open_file(dir / "only-written", O_WRONLY | O_CREAT);
  REQUIRE(opened.ok());
  std::byte memory[8];
  CHECK(!read_direct(opened->get(), 0, memory));
  CHECK(!open_direct(-1).valid());
}
