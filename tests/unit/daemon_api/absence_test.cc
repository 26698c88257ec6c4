#include "daemon_api/absence.h"

#include <doctest/doctest.h>

namespace weft {
namespace {

using namespace std::chrono_literals;

const Deadline kStart{100s};

TEST_CASE("a daemon that goes away is waited for once, by all readers together") {
  Absence absence(false, kStart);
  absence.end();
  CHECK(!absence.is_over(kStart + 50s));
  CHECK(!absence.is_over(kStart + 50s + Absence::kWaitedFor - 1ms));
  CHECK(absence.is_over(kStart + 50s + Absence::kWaitedFor));
  CHECK(absence.is_over(kStart + 900s));
}

TEST_CASE("a daemon that was back is waited for again") {
  Absence absence(false, kStart);
  CHECK(absence.is_over(kStart + 1s));
  absence.end();
  CHECK(!absence.is_over(kStart + 2s));
}

TEST_CASE("the first daemon is waited for from the start if one is expected, else not") {
  Absence expected(true, kStart);
  CHECK(!expected.is_over(kStart));
  CHECK(expected.is_over(kStart + Absence::kWaitedFor));
  Absence none(false, kStart);
  CHECK(none.is_over(kStart));
}

}  // namespace
}  // namespace weft
