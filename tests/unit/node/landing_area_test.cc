#include "node/landing_area.h"

#include <doctest/doctest.h>
#include <fcntl.h>

#include <algorithm>

#include "base/memory_file.h"
#include "testing.h"

namespace weft::testing {

TEST_CASE("what lands is in the file, until the area is left; it is seen all the same") {
  const std::uint64_t size = 3 * 4096 + 17;
  auto file = memory_file("landing");
  REQUIRE(file.ok());
  REQUIRE(write_exact(file->get(), 0, std::vector<std::byte>(size), "x").ok());
  auto own = open_file("/proc/self/fd/" + std::to_string(file->get()), O_RDWR);
  REQUIRE(own.ok());
  auto area = LandingArea::map(std::move(own).value(), size);
  REQUIRE(area.ok());
  const auto memory = (*area)->memory();
  const auto in_file = [&](std::uint64_t offset) {
    std::byte one{};
    REQUIRE(read_exact(file->get(), offset, std::span(&one, 1), "x").ok());
    return std::to_integer<int>(one);
  };
  memory[5000] = std::byte{1};
  memory[size - 1] = std::byte{2};
  CHECK(in_file(5000) == 1);
  CHECK(in_file(size - 1) == 2);
  REQUIRE((*area)->leave().ok());
  CHECK((*area)->left());
  memory[5001] = std::byte{3};
  memory[9000] = std::byte{4};
  CHECK(in_file(5001) == 0);
  CHECK(in_file(9000) == 0);
  CHECK(memory[5000] == std::byte{1});
  CHECK(memory[5001] == std::byte{3});
  CHECK(memory[9000] == std::byte{4});
  CHECK(memory[size - 1] == std::byte{2});
}

}  // namespace weft::testing
