// gc runs when a hold ends, when space is short, and once per gc_delay.
#include "daemon/background/auto_gc.h"

#include <doctest/doctest.h>

#include <atomic>
#include <memory>

#include "fakes/stepped_time.h"

namespace weft::testing {
namespace {

using namespace std::chrono_literals;

struct Collected {
  SteppedTime time;
  std::atomic<int> runs = 0;
  std::atomic<bool> fails = false;
  std::atomic<bool> short_of_space = false;
  std::atomic<bool> purged = false;
  std::atomic<bool> all = false;
  AutoGc gc{{.delay = [] { return 100s; },
             .space_is_short = [this] { return short_of_space.load(); },
             .hold = [](VersionId) -> Result<VersionHold> { return VersionHold(); },
             .collect = [this](bool rewrites_all, const std::function<bool()>&) -> Status {
               all = rewrites_all;
               ++runs;
               if (fails) return Error{Errc::busy, "another gc runs"};
               return {};
             },
             .purged = [this] { return purged ? std::vector<VersionId>{7} : std::vector<VersionId>(); }},
            time};
};

TEST_CASE("gc runs once per gc_delay, and sooner after a failure") {
  Collected node;
  node.gc.start();
  CHECK(node.time.next_pause() == 100s);
  CHECK(node.runs == 0);
  node.fails = true;
  node.time.pass(100s);
  CHECK(node.time.next_pause() == 60s);
  CHECK(node.runs == 1);
  node.fails = false;
  node.time.pass(60s);
  CHECK(node.time.next_pause() == 100s);
  CHECK(node.runs == 2);
}

TEST_CASE("a removed version is held for gc_delay, and gc runs after it") {
  Collected node;
  node.gc.removed(7, VersionHold());
  node.time.pass(70s);
  node.gc.start();
  CHECK(node.gc.held().versions == 1);
  CHECK(node.gc.held().next_release == 30s);
  for (int looks = 0; looks < 3; ++looks) {
    CHECK(node.time.next_pause() == 10s);  // the next look at the free space
    CHECK(node.runs == 0);
    node.time.pass(10s);
  }
  CHECK(node.time.next_pause() == 100s);
  CHECK(node.runs == 1);
  CHECK(node.gc.held().versions == 0);
}

TEST_CASE("a version that was undeleted is not held any more") {
  Collected node;
  node.gc.removed(7, VersionHold());
  node.gc.removed(8, VersionHold());
  node.gc.removed(7, VersionHold());
  node.gc.undeleted(7);
  CHECK(node.gc.held().versions == 1);
}

TEST_CASE("gc that fails after it has reaped a purged version rewrites all packs the next time") {
  Collected node;
  node.purged = true;
  node.fails = true;
  node.gc.start();
  CHECK(node.time.next_pause() == 60s);
  CHECK(node.runs == 1);
  node.purged = false;
  node.fails = false;
  node.time.pass(60s);
  CHECK(node.time.next_pause() == 100s);
  CHECK(node.runs == 2);
  CHECK(node.all);
  node.time.pass(100s);
  CHECK(node.time.next_pause() == 100s);
  CHECK_FALSE(node.all);
}

TEST_CASE("a purged version is not held, and gc rewrites all packs at once, and once only") {
  Collected node;
  node.gc.removed(7, VersionHold());
  node.gc.removed(8, VersionHold());
  node.purged = true;
  node.gc.start();
  CHECK(node.time.next_pause() == 10s);
  CHECK(node.runs == 1);
  CHECK(node.all);
  CHECK(node.gc.held().versions == 1);
  node.gc.look();
  node.time.pass(10s);
  CHECK(node.time.next_pause() == 10s);
  CHECK(node.runs == 1);
}

TEST_CASE("if space is short, all holds end at the next look") {
  Collected node;
  node.gc.removed(7, VersionHold());
  node.gc.removed(8, VersionHold());
  node.gc.start();
  CHECK(node.time.next_pause() == 10s);
  node.short_of_space = true;
  node.time.pass(10s);
  CHECK(node.time.next_pause() == 100s);
  CHECK(node.runs == 1);
  CHECK(node.gc.held().versions == 0);
}

TEST_CASE("collect_soon() runs gc without a hold") {
  Collected node;
  node.gc.collect_soon();
  node.gc.start();
  CHECK(node.time.next_pause() == 100s);
  CHECK(node.runs == 1);
}

}  // namespace
}  // namespace weft::testing
