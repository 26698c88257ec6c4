#include "fetch/source_rate.h"

#include <doctest/doctest.h>

#include <chrono>

namespace weft::testing {
namespace {

using namespace std::chrono_literals;

void pass_over(SourceRate& rate, int times) {
  for (int i = 0; i < times; ++i) rate.passed_over();
}

}  // namespace

TEST_CASE("a source that others are read instead of is tried now and then") {
  SourceRate rate;
  pass_over(rate, 15);
  CHECK(!rate.is_due());
  pass_over(rate, 1);
  CHECK(rate.is_due());
  rate.begin();
  rate.end(1'000'000, 1s);
  CHECK(!rate.is_due());
  CHECK(rate.bytes_per_s() == 1e6);
}

TEST_CASE("a read whose time tells nothing about the source was a try") {
  SourceRate rate;
  pass_over(rate, 16);
  rate.begin();
  rate.end(1'000'000, 0s);  // a rate of this node held it back
  CHECK(!rate.is_due());
  CHECK(rate.bytes_per_s() == 0);
}

TEST_CASE("a read that failed is no try") {
  SourceRate rate;
  pass_over(rate, 16);
  rate.begin();
  rate.end(0, 1s);
  CHECK(rate.is_due());
}

}  // namespace weft::testing
