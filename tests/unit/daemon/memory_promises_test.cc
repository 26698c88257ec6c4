// The bytes that publishes may put into memory, by user.
#include "daemon/background/memory_promises.h"

#include <doctest/doctest.h>

#include "fakes/manual_time.h"

namespace weft {
namespace {

using namespace std::chrono_literals;

constexpr uid_t kOwn = 100, kOne = 1001, kOther = 1002;
constexpr std::uint64_t kMib = 1U << 20U;

struct Memory {
  testing::ManualTime time;
  MemoryPromises promises{100 * kMib, kOwn, time};

  bool fits(uid_t user, std::uint64_t mib, std::uint64_t taken_mib = 0) {
    return promises.begin(user, mib * kMib, taken_mib * kMib) != promises.end();
  }
};

TEST_CASE("a user who promises much leaves memory to others") {
  Memory memory;
  CHECK(memory.promises.most_for(kOne) == 50 * kMib);
  CHECK(memory.fits(kOne, 50));
  CHECK_FALSE(memory.fits(kOne, 1));
  CHECK(memory.fits(kOther, 25));
  CHECK_FALSE(memory.fits(kOther, 1));
  CHECK(memory.fits(0, 25));
  CHECK_FALSE(memory.fits(0, 1));
  CHECK(memory.fits(kOne, 0));  // goes to the disk
}

TEST_CASE("what is in memory counts beside the promises") {
  Memory memory;
  CHECK_FALSE(memory.fits(0, 50, 51));
  CHECK_FALSE(memory.fits(0, 1, 200));
  CHECK(memory.fits(0, 50, 50));
  CHECK_FALSE(memory.fits(0, 1, 50));
}

TEST_CASE("a promise ends, and the publish with it") {
  Memory memory;
  const auto hung = memory.promises.begin(kOne, 40 * kMib, 0);
  const auto committing = memory.promises.begin(kOther, 10 * kMib, 0);
  CHECK(memory.promises.commit(committing));
  memory.time.pass(69s);
  CHECK(memory.promises.lasts(hung));
  CHECK_FALSE(memory.fits(kOne, 20));
  memory.time.pass(1s);
  CHECK(memory.fits(kOne, 50));
  CHECK_FALSE(memory.promises.lasts(hung));
  CHECK_FALSE(memory.promises.commit(hung));
  CHECK(memory.promises.finish(hung, 0) == 0);
  CHECK(memory.promises.lasts(committing));
  CHECK(memory.promises.finish(committing, 3) == 10 * kMib);
}

TEST_CASE("a version counts for its user until it is on the disk") {
  Memory memory;
  const auto publish = memory.promises.begin(kOne, 50 * kMib, 0);
  REQUIRE(memory.promises.commit(publish));
  CHECK(memory.promises.finish(publish, 7) == 50 * kMib);
  CHECK_FALSE(memory.fits(kOne, 1, 10));
  CHECK(memory.promises.versions() == std::vector<VersionId>{7});
  memory.promises.erase(7);
  CHECK(memory.fits(kOne, 50, 10));
  const auto failed = memory.promises.begin(kOther, 10 * kMib, 0);
  memory.promises.finish(failed, 0);
  CHECK(memory.promises.versions().empty());
}

TEST_CASE("a publish holds up flushes in its first minute") {
  Memory memory;
  CHECK_FALSE(memory.promises.hold_flush());
  const auto publish = memory.promises.begin(kOne, 0, 0);
  CHECK(memory.promises.hold_flush());
  memory.time.pass(60s);
  CHECK_FALSE(memory.promises.hold_flush());
  memory.promises.finish(publish, 0);
}

}  // namespace
}  // namespace weft
