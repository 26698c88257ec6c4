#include <doctest/doctest.h>

#include <chrono>

#include "daemon/background/drain_targets.h"
#include "daemon/background/drain_watch.h"

namespace weft {

TEST_CASE("a drain is idle while every version that was left is still left") {
  using std::chrono::seconds;
  const DrainWatch::Clock::time_point start{seconds(1'000)};
  DrainWatch watch;
  CHECK(watch.idle({{"a", 1}, {"b", 1}}, start) == seconds(0));
  CHECK(watch.idle({{"a", 1}, {"b", 1}}, start + seconds(10)) == seconds(10));
  CHECK(watch.idle({{"a", 1}, {"b", 1}, {"c", 1}}, start + seconds(20)) == seconds(20));  // a new one moved nothing
  CHECK(watch.idle({{"a", 1}, {"c", 1}}, start + seconds(30)) == seconds(0));
  CHECK(watch.idle({{"a", 1}, {"c", 1}}, start + seconds(45)) == seconds(15));
}

TEST_CASE("a version that is asked for again stays with its node, and costs space once") {
  DrainTargets targets;
  targets.offer("n1", 100);
  targets.offer("n2", 90);
  CHECK(targets.target_for({"a", 1}, 30) == "n1");
  CHECK(targets.target_for({"a", 1}, 30) == "n1");  // though n2 has more space now
  CHECK(targets.target_for({"b", 1}, 60) == "n2");
  CHECK(targets.target_for({"c", 1}, 69) == "n1");  // 70 are left, since a was subtracted once
}

TEST_CASE("a version goes to another node if its own refused or left") {
  DrainTargets targets;
  targets.offer("n1", 100);
  targets.offer("n2", 90);
  CHECK(targets.target_for({"a", 1}, 30) == "n1");
  targets.refuse({"a", 1});
  CHECK(targets.target_for({"a", 1}, 30) == "n2");
  CHECK(targets.target_for({"b", 1}, 95) == "n1");  // the refused bytes are free again
  targets.keep_only([](const std::string& node) { return node != "n2"; });
  CHECK(targets.target_for({"a", 1}, 1) == std::nullopt);  // n1 refused it
  CHECK(targets.target_for({"c", 1}, 5) == std::nullopt);  // n1 has 5 left, and must keep some
}

}  // namespace weft
