#include "fetch/cache_room.h"

#include <doctest/doctest.h>

#include <atomic>
#include <functional>

#include "away.h"
#include "fakes/manual_time.h"
#include "fetch/passing_bytes.h"

namespace weft::testing {
namespace {

using namespace std::chrono_literals;

// Packs with as many bytes as a test sets. A wait for a change takes time of the test's clock.
class SetPacks final : public FilledPacks {
 public:
  explicit SetPacks(ManualTime& time) : time_(time) {}
  std::uint64_t unlisted_bytes(const std::set<PackId>& /*listed*/) override { return unlisted; }
  std::uint64_t coming_bytes() override { return coming; }
  void drop_unused(Duration /*unused*/) override { ++drops; }
  bool hurry_complete() override {
    ++hurries;
    return !ends;
  }
  void wait_for_change(Duration time_max) override {
    ++waits;
    time_.pass(time_max);
    if (change) change();
  }
  std::uint64_t unlisted = 0, coming = 0;
  int drops = 0, hurries = 0, waits = 0;
  bool ends = false;
  std::function<void()> change;

 private:
  ManualTime& time_;
};

class CountsEvictions final : public TwinsReads {
 public:
  using TwinsReads::TwinsReads;
  std::string_view name() const override { return "counts"; }
  void evicted() override { ++evictions; }
  std::atomic<int> evictions = 0;
};

// A cache of at most 1000 bytes on a disk of unknown size.
struct SmallCache {
  CachingStore store;
  std::shared_ptr<CountsEvictions> source = std::make_shared<CountsEvictions>(std::make_shared<TwinSource>());
  FetchSources sources{{source}, 1s};
  ManualTime time;
  SetPacks packs{time};
  CacheRoom room{store, packs, sources, CacheSpace([] { return std::nullopt; }), time};
  std::unique_ptr<FetchPack> pack = must(store.fetch_pack(1000));

  SmallCache() { room.set_bound(1000); }
  Status make_room(std::uint64_t bytes) {
    packs.coming = bytes;
    return room.make_room(*pack, bytes);
  }
};

}  // namespace

TEST_CASE("bytes that fit need no eviction, and space that is known needs no survey of the cache") {
  SmallCache one;
  one.packs.unlisted = 300;
  CHECK(one.make_room(100).ok());
  CHECK(one.make_room(100).ok());
  CHECK(one.packs.drops == 1);
  CHECK(one.source->evictions == 0);
  CHECK(one.room.has_room(600));
  CHECK(!one.room.has_room(601));
  CHECK(one.room.bound() == 1000);
  CHECK(one.room.used_bytes() == 300);
}

TEST_CASE("a full cache evicts, and waits for packs that are about to close") {
  SmallCache one;
  one.packs.unlisted = 950;
  one.store.evicts.packs = 1;
  one.store.evicts.kept_bytes = 0;
  one.packs.change = [&] { one.packs.unlisted = 100; };
  CHECK(one.make_room(100).ok());
  CHECK(one.source->evictions > 0);
  CHECK(one.packs.hurries == 1);
  CHECK(one.packs.waits == 1);
}

TEST_CASE("bytes without space are refused after a wait, then at once, and a new bound is tried at once") {
  SmallCache one;
  one.packs.unlisted = 1000;
  const Deadline begun = one.time.now();
  CHECK(one.make_room(100).error().code == Errc::no_space);
  CHECK(one.time.now() - begun == 2s);
  const int waits = one.packs.waits, surveys = one.packs.drops;
  CHECK(waits > 0);
  CHECK(one.make_room(100).error().code == Errc::no_space);
  CHECK(one.packs.drops == surveys);
  one.time.pass(250ms);
  CHECK(one.make_room(100).error().code == Errc::no_space);
  CHECK(one.packs.drops == surveys + 1);
  CHECK(one.packs.waits == waits);
  one.room.set_bound(2000);
  CHECK(one.make_room(100).ok());
}

TEST_CASE("the end ends the wait for space, and a pack that keeps nothing needs none") {
  SmallCache one;
  one.packs.unlisted = 1000;
  one.packs.ends = true;
  CHECK(one.make_room(100).error().code == Errc::no_space);
  CHECK(one.packs.waits == 0);
  const auto passing = pass_only_pack(1000);
  REQUIRE(passing.ok());
  CHECK(one.room.make_room(**passing, 1).error().code == Errc::no_space);
}

TEST_CASE("a lowered bound is kept once the packs in excess are closed") {
  SmallCache one;
  one.packs.unlisted = 2000;
  CHECK(one.room.is_over());
  one.room.keep_bound();
  CHECK(one.room.is_over());
  one.packs.unlisted = 500;
  one.room.keep_bound();
  CHECK(!one.room.is_over());
}

}  // namespace weft::testing
