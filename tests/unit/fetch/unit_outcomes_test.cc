#include "fetch/unit_outcomes.h"

#include <doctest/doctest.h>

#include "made_transfer.h"
#include "os/sys.h"

namespace weft::testing {
namespace {

using namespace std::chrono_literals;

struct Ending {
  CachingStore store;
  FetchOptions options;
  FetchSources sources{{}, 1s};
  FetchState state{options, sources, [] {}};
  CacheRoom room{store, state, sources, CacheSpace([] { return std::nullopt; })};
  UnitOutcomes outcomes{state, room, options};
  std::shared_ptr<Transfer> transfer = made_transfer(store, {300, kDigestChunk});

  FetchTask begin(std::size_t unit, Traffic traffic) {
    FetchTask task{transfer, unit, unit + 1};
    task.traffic = traffic;
    const MutexLock lock(state.mutex);
    transfer->begin(unit);
    return task;
  }
  UnitState end(FetchTask task, const Result<std::vector<Digest>>& digests) {
    const std::size_t unit = task.unit;
    outcomes.set(task, digests, Transfer::Clock::now());
    CHECK(!task.transfer);
    return transfer->state(unit);
  }
};

Result<std::vector<Digest>> came() {
  return std::vector<Digest>(1);
}

}  // namespace

TEST_CASE("kept bytes are in the pack, and their unit is here") {
  Ending one;
  auto task = one.begin(0, Traffic::ahead);
  const auto bytes = random_bytes(300, 1);
  REQUIRE(one.outcomes.keep_or_pass(task, {}, bytes).ok());
  CHECK(!task.passed);
  std::vector<std::byte> read(300);
  REQUIRE(read_exact(one.transfer->pack->fd(), 0, read, "pack").ok());
  CHECK(read == bytes);
  CHECK(one.end(task, came()) == UnitState::here);
}

TEST_CASE("bytes without space pass to a reader from memory, and those ahead of readers fail") {
  Ending one;
  const Status full = Error{Errc::no_space, "full"};
  const auto bytes = random_bytes(300, 1);
  auto ahead = one.begin(0, Traffic::ahead);
  CHECK(one.outcomes.keep_or_pass(ahead, full, bytes).error().code == Errc::no_space);
  CHECK(one.end(ahead, full.error()) == UnitState::failed);
  auto task = one.begin(0, Traffic::foreground);
  REQUIRE(one.outcomes.keep_or_pass(task, full, bytes).ok());
  REQUIRE(task.passed);
  const ChunkRun run = task.runs().front();
  CHECK(one.end(task, came()) == UnitState::passed);
  const MutexLock lock(one.state.mutex);
  CHECK(one.state.passing.find(run));
}

TEST_CASE("units that may still come are queued again, and others fail") {
  Ending one;
  const Error silent{Errc::timed_out, "silent"};
  CHECK(one.end(one.begin(0, Traffic::foreground), silent) == UnitState::failed);  // no unit has come
  CHECK(one.end(one.begin(1, Traffic::foreground), came()) == UnitState::here);
  CHECK(one.end(one.begin(0, Traffic::foreground), silent) == UnitState::queued);
  CHECK(one.transfer->was_put_back(0));
  const Error absent{Errc::not_found, "absent"};
  CHECK(one.end(one.begin(0, Traffic::foreground), absent) == UnitState::failed);
  auto young = one.begin(0, Traffic::foreground);
  young.young = true;
  CHECK(one.end(young, absent) == UnitState::queued);
}

}  // namespace weft::testing
