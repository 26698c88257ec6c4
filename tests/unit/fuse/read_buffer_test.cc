#include "fuse/ops/read_buffer.h"

#include <doctest/doctest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <thread>

#include "fuse/state/server.h"
#include "os/page_cache.h"

namespace weft {
namespace {

bool any_resident(std::span<std::byte> bytes) {
  std::array<unsigned char, kReadBytesMax / 4096> pages{};
  REQUIRE(page_bytes() >= 4096);
  REQUIRE(::mincore(bytes.data(), bytes.size(), pages.data()) == 0);
  return std::ranges::any_of(pages, [](unsigned char page) { return (page & 1U) != 0; });
}

}  // namespace

TEST_CASE("the pages of an unused read buffer are freed, and the buffer is reused") {
  std::span<std::byte> bytes;
  {
    const ReadBuffer buffer;
    bytes = buffer.bytes();
    REQUIRE(bytes.size() == kReadBytesMax);
    std::ranges::fill(bytes, std::byte{7});
    std::thread([] { trim_read_buffers(); }).join();
    CHECK(bytes[4096] == std::byte{7});
  }
  CHECK(any_resident(bytes));
  trim_read_buffers();
  CHECK_FALSE(any_resident(bytes));
  const ReadBuffer again;
  CHECK(again.bytes().data() == bytes.data());
  again.bytes()[0] = std::byte{1};
}

TEST_CASE("each thread has its own read buffer, freed with the thread") {
  const ReadBuffer mine;
  const std::byte* theirs = nullptr;
  std::thread([&] { theirs = ReadBuffer().bytes().data(); }).join();
  CHECK(theirs != nullptr);
  CHECK(theirs != mine.bytes().data());
  trim_read_buffers();
}

}  // namespace weft
