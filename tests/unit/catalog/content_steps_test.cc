#include "catalog/content_steps.h"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

using namespace weft;

TEST_CASE("batches of steps cover each step of each kind once, in order") {
  constexpr std::size_t kFirst = 5, kSecond = 3;  // steps of two kinds
  for (std::uint64_t batch = 1; batch <= kFirst + kSecond + 1; ++batch) {
    CAPTURE(batch);
    std::vector<std::uint32_t> first, second;
    for (std::uint64_t from = 0; from < kFirst + kSecond; from += batch) {
      for (const std::uint32_t step : numbers_of(kFirst, 0, from, from + batch)) first.push_back(step);
      for (const std::uint32_t step : numbers_of(kSecond, kFirst, from, from + batch)) second.push_back(step);
    }
    CHECK(first == std::vector<std::uint32_t>{0, 1, 2, 3, 4});
    CHECK(second == std::vector<std::uint32_t>{0, 1, 2});
  }
  const std::vector<int> steps = {10, 11, 12};
  const auto some = steps_of(steps, kFirst, 6, 100);
  CHECK(std::vector<int>(some.begin(), some.end()) == std::vector<int>{11, 12});
  CHECK(steps_of(steps, kFirst, 0, kFirst).empty());
}
