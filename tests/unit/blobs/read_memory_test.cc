#include "blobs/read_memory.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <vector>

namespace weft {
namespace {

constexpr std::size_t kLarge = 4U << 20U;

TEST_CASE("released read memory is reused, and never by two holders at once") {
  drop_read_memory();
  std::set<std::byte*> first;
  {
    std::vector<std::shared_ptr<std::byte[]>> held;
    for (int i = 0; i < 3; ++i) held.push_back(take_read_memory(kLarge));
    for (const auto& one : held) first.insert(one.get());
    CHECK(first.size() == 3);
  }
  const auto again = take_read_memory(kLarge - 1);
  CHECK(first.contains(again.get()));
  const auto other = take_read_memory(kLarge);
  CHECK(first.contains(other.get()));
  CHECK(other != again);
}

TEST_CASE("read memory of any size is writable to its end") {
  for (const std::size_t size : {std::size_t{1}, std::size_t{300'000}, kLarge, 4 * kLarge}) {
    const auto memory = take_read_memory(size);
    std::fill_n(memory.get(), size, std::byte{7});
    CHECK(memory[size - 1] == std::byte{7});
  }
  drop_read_memory();
}

}  // namespace
}  // namespace weft
