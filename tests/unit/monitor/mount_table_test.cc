#include "monitor/mount_table.h"

#include <doctest/doctest.h>
#include <fmt/core.h>

#include "base/limits.h"
#include "fakes/manual_time.h"

namespace weft::testing {
namespace {

using namespace std::chrono_literals;

constexpr uid_t kAlice = 1000, kBob = 1001;

MountFigures figures(std::string id, std::string directory, std::uint64_t reads) {
  return {.id = std::move(id),
          .directory = std::move(directory),
          .passthrough = true,
          .restarts = 1,
          .requests = {{"read", reads, {reads, 0, 0, 0, 0, 0, 0}}}};
}

TEST_CASE("a mount has its last report, for half a minute") {
  ManualTime time;
  MountTable table(time);
  table.report(kAlice, figures("a", "/a", 1));
  table.report(kAlice, figures("a", "/a", 5));
  table.report(kBob, figures("a", "/a", 7));
  REQUIRE(table.mounts().size() == 2);
  CHECK(table.mounts()[0].user == kAlice);
  CHECK(table.mounts()[0].figures == figures("a", "/a", 5));
  CHECK(table.mounts()[1].user == kBob);
  time.pass(20s);
  table.report(kBob, figures("a", "/a", 8));
  time.pass(20s);
  REQUIRE(table.mounts().size() == 1);
  CHECK(table.mounts()[0].figures == figures("a", "/a", 8));
}

TEST_CASE("mounts of a user at one directory are one") {
  ManualTime time;
  MountTable table(time);
  table.report(kAlice, figures("a", "/a", 1));
  table.report(kAlice, figures("b", "/a", 2));
  table.report(kAlice, figures("c", "/c", 4));
  REQUIRE(table.mounts().size() == 2);
  const MountFigures both = table.mounts()[0].figures;
  CHECK(both.restarts == 2);
  CHECK(both.requests == std::vector<MountRequests>{{"read", 3, {3, 0, 0, 0, 0, 0, 0}}});
}

TEST_CASE("a kind that a report names twice is there once") {
  MountTable table;
  MountFigures twice = figures("a", "/a", 1);
  twice.requests.push_back(twice.requests.front());
  table.report(kAlice, twice);
  CHECK(table.mounts()[0].figures.requests == std::vector<MountRequests>{{"read", 2, {2, 0, 0, 0, 0, 0, 0}}});
}

TEST_CASE("a user with many mounts keeps no other user out") {
  MountTable table;
  for (std::size_t i = 0; i < 2 * limits::kMountsOfUserMax; ++i)
    table.report(kAlice, figures(fmt::format("{}", i), fmt::format("/{}", i), i));
  CHECK(table.mounts().size() == limits::kMountsOfUserMax);
  table.report(kBob, figures("b", "/b", 1));
  CHECK(table.mounts().size() == limits::kMountsOfUserMax + 1);
  table.report(kAlice, figures("0", "/0", 99));  // one that is known still reports
  CHECK(table.mounts()[0].figures == figures("0", "/0", 99));
}

}  // namespace
}  // namespace weft::testing
