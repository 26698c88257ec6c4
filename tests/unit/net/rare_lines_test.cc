#include "net/calls/rare_lines.h"

#include <doctest/doctest.h>

namespace weft::net {
namespace {

TEST_CASE("each subject has a line a minute, and many subjects have no more than a few") {
  RareLines lines;
  const auto begin = RareLines::Clock::now();
  CHECK(lines.due("a", begin));
  CHECK(!lines.due("a", begin + std::chrono::seconds(59)));
  CHECK(lines.due("b", begin + std::chrono::seconds(59)));
  CHECK(lines.due("a", begin + std::chrono::seconds(60)));
  std::size_t written = 0;
  for (int i = 0; i < 1'000; ++i) written += lines.due(std::to_string(i), begin + std::chrono::seconds(61)) ? 1 : 0;
  CHECK(written == RareLines::kSubjectsMax - 2);
}

}  // namespace
}  // namespace weft::net
