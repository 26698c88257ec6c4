#include "format/slice.h"

#include <doctest/doctest.h>

#include <array>

#include "testing.h"

using namespace weft;
using namespace weft::testing;

TEST_CASE("a slice is a file of its own, and no read leaves it") {
  MemorySource whole(std::string_view("0123456789"));
  SliceSource slice(whole, {3, 4});
  CHECK(slice.size() == 4);
  std::array<std::byte, 4> bytes{};
  REQUIRE(slice.read(0, bytes).ok());
  CHECK(as_text(bytes) == "3456");
  REQUIRE(slice.read(2, std::span(bytes).first(2)).ok());
  CHECK(as_text(std::span(bytes).first(2)) == "56");
  CHECK(slice.read(4, {}).ok());
  CHECK(slice.read(1, bytes).error().code == Errc::internal);
  CHECK(slice.read(5, {}).error().code == Errc::internal);
  CHECK(slice.read(UINT64_MAX, std::span(bytes).first(2)).error().code == Errc::internal);
  SliceSource inner(slice, {1, 2});
  REQUIRE(inner.read(0, std::span(bytes).first(2)).ok());
  CHECK(as_text(std::span(bytes).first(2)) == "45");
}
