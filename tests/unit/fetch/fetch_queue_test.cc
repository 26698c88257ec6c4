#include "fetch/fetch_queue.h"

#include <doctest/doctest.h>

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "away.h"
#include "made_transfer.h"

namespace weft::testing {
namespace {

using namespace std::chrono_literals;

// A source that is as ready as a test sets it, and busy for the first chunks of each blob.
class SetSource final : public TwinsReads {
 public:
  using TwinsReads::TwinsReads;
  std::string_view name() const override { return "set"; }
  Readiness readiness(const Digest& /*manifest*/, std::span<const ChunkRun> runs) override {
    return runs.front().first < busy_before ? Readiness::busy : ready.load();
  }
  std::atomic<Readiness> ready = Readiness::ready;
  std::atomic<std::uint64_t> busy_before = 0;
};

struct Queued {
  CachingStore store;
  std::shared_ptr<SetSource> source = std::make_shared<SetSource>(std::make_shared<TwinSource>());
  FetchSources sources{{source}, 1s};
  SwarmFetch swarm{1s, 4, [] {}};
  FetchQueue queue{swarm, sources, 4};
  std::shared_ptr<Transfer> transfer = made_transfer(store, {8 * kDigestChunk});

  // Lets the units of a task arrive.
  void arrive(const FetchTask& task) {
    for (std::size_t unit = task.unit; unit < task.end; ++unit) task.transfer->arrive(unit, {});
    queue.ended(task);
  }
};

using Wanted = std::vector<std::pair<std::uint64_t, std::uint64_t>>;  // first chunk and count

// A transfer that may swarm. Its blob has a base.
struct Based : Queued {
  Based() {
    const ContentId blob = transfer->plan.blobs.front().id;
    ContentId base = blob;
    base.root.bytes[1] = 1;
    transfer->bases = std::make_shared<VersionBases>("m@2", "m@1", BasePairs{{blob, {base, 1}}});
    transfer->expect_comparisons();
    transfer->may_swarm = true;
  }
  // The runs of the new calls, which all want chunks that may have a base.
  Wanted wanted() {
    Wanted out;
    for (const SwarmFetch::Call& call : swarm.take_calls()) {
      CHECK(call.kind == SwarmFetch::Call::Kind::want);
      CHECK(call.coded);
      for (const ChunkRun& run : call.runs) out.emplace_back(run.first, run.count);
    }
    return out;
  }
  std::vector<UnitState> states_from(std::size_t unit, std::size_t count = 7) const {
    std::vector<UnitState> out;
    for (std::size_t i = 0; i < count; ++i) out.push_back(transfer->state(unit + i));
    return out;
  }
};

}  // namespace

TEST_CASE("a unit that a reader waits for goes before units ahead of readers, and each is taken once") {
  Queued one;
  one.queue.want_ahead(one.transfer, {0, 3});
  one.queue.want(one.transfer, 2);
  auto task = one.queue.take();
  REQUIRE(task);
  CHECK(task->unit == 2);
  CHECK(task->end == 3);
  CHECK(task->traffic == Traffic::foreground);
  CHECK(!one.queue.take());  // the first unit of a transfer comes alone
  one.arrive(*task);
  std::size_t taken = 0;
  while ((task = one.queue.take())) {
    CHECK(task->traffic == Traffic::ahead);
    CHECK(task->unit == taken);
    taken = task->end;
    one.arrive(*task);
  }
  CHECK(taken == 2);
  one.queue.drop_past();
  CHECK(one.queue.is_idle());
  CHECK(!one.queue.has(*one.transfer));
}

TEST_CASE("staging comes after what is read ahead, and a transfer that is wanted sooner is staging no more") {
  Queued one;
  const auto staged = made_transfer(one.store, {4 * kDigestChunk}, 2);
  one.queue.set_class(staged, Traffic::staging, true);
  one.queue.want_ahead(staged, {0, 2});
  one.queue.want_ahead(one.transfer, {0, 1});
  const auto first = one.queue.take();
  REQUIRE(first);
  CHECK(first->transfer == one.transfer);
  CHECK(first->traffic == Traffic::ahead);
  const auto second = one.queue.take();
  REQUIRE(second);
  CHECK(second->transfer == staged);
  CHECK(second->traffic == Traffic::staging);
  one.arrive(*first);
  one.arrive(*second);
  one.queue.want_ahead(one.transfer, {1, 2});
  one.queue.set_class(one.transfer, Traffic::staging, true);  // its unit is wanted ahead of a reader
  CHECK(one.transfer->background == Traffic::ahead);
  one.queue.set_class(staged, Traffic::ahead, false);  // a reader of a part of it
  CHECK(staged->background == Traffic::staging);
  one.queue.set_class(staged, Traffic::ahead, true);
  const auto third = one.queue.take();
  const auto fourth = one.queue.take();
  REQUIRE(third);
  REQUIRE(fourth);
  CHECK(third->traffic == Traffic::ahead);
  CHECK(fourth->transfer == staged);
  CHECK(fourth->traffic == Traffic::ahead);
  one.arrive(*fourth);
  one.queue.want(staged, 2);
  CHECK(one.queue.take()->traffic == Traffic::foreground);
}

TEST_CASE("a task is waited for once a reader asks for one of its units") {
  Queued one;
  one.queue.want_ahead(one.transfer, {0, 1});
  const auto task = one.queue.take();
  REQUIRE(task);
  CHECK(!task->is_waited_for());
  one.queue.want(one.transfer, 1);
  CHECK(!task->is_waited_for());
  one.queue.want(one.transfer, 0);
  CHECK(task->is_waited_for());
}

TEST_CASE("what a rate holds back leaves workers to readers") {
  Queued one;
  const auto gate = std::make_shared<PaceGate>();
  FetchQueue queue(one.swarm, one.sources, 4, gate);
  std::vector<std::shared_ptr<Transfer>> ahead;
  std::vector<std::shared_ptr<Transfer>> staged;
  for (VersionId version = 2; version < 6; ++version) {
    ahead.push_back(made_transfer(one.store, {kDigestChunk}, version));
    staged.push_back(made_transfer(one.store, {kDigestChunk}, version + 10));
    queue.set_class(staged.back(), Traffic::staging, true);
    queue.want_ahead(ahead.back(), {0, 1});
    queue.want_ahead(staged.back(), {0, 1});
  }
  gate->set({.total = 1'000'000});
  const auto first = queue.take();
  const auto second = queue.take();
  const auto third = queue.take();
  REQUIRE((first && second && third));
  CHECK(first->traffic == Traffic::ahead);
  CHECK(second->traffic == Traffic::ahead);
  CHECK(third->traffic == Traffic::staging);
  CHECK(!queue.take());
  queue.want(one.transfer, 0);
  const auto of_reader = queue.take();
  REQUIRE(of_reader);
  CHECK(of_reader->traffic == Traffic::foreground);
  third->transfer->arrive(0, {});
  queue.ended(*third);
  CHECK(queue.take()->traffic == Traffic::staging);
  gate->set({.staging = 1'000'000});  // which does not hold back what is read ahead
  CHECK(queue.take()->traffic == Traffic::ahead);
  CHECK(queue.take()->traffic == Traffic::ahead);
  CHECK(!queue.take());
  gate->set({});
  CHECK(queue.take()->traffic == Traffic::staging);
}

TEST_CASE("units whose source is busy stay queued, and units without a source keep half of the workers") {
  Queued one;
  for (std::size_t unit = 0; unit < 8; ++unit) one.queue.want(one.transfer, unit);
  one.source->ready = Readiness::busy;
  CHECK(!one.queue.take());
  one.source->ready = Readiness::lacking;
  const auto first = one.queue.take();
  REQUIRE(first);
  CHECK(first->absent);
  CHECK(one.queue.take());
  CHECK(!one.queue.take());
  one.queue.ended(*first);
  CHECK(one.queue.take());
}

TEST_CASE("units ahead of readers are taken in order, past those whose source is busy") {
  Queued one;
  one.queue.want(one.transfer, 0);
  one.arrive(*one.queue.take());
  one.queue.want_ahead(one.transfer, {1, 8});
  one.source->busy_before = 3;
  auto task = one.queue.take();
  REQUIRE(task);
  CHECK(task->unit == 3);
  one.source->busy_before = 0;
  task = one.queue.take();
  REQUIRE(task);
  CHECK(task->unit == 1);
}

TEST_CASE("each blob with a base begins with one unit, however many units wait for its comparison") {
  constexpr std::size_t kUnits = 70;  // of a blob: more than the queue looks at
  Queued one;
  const auto based = made_transfer(one.store, {100, kUnits * kDigestChunk, kUnits * kDigestChunk});
  BasePairs pairs;
  for (const Extent& blob : based->plan.blobs) pairs[blob.id] = {blob.id, 1};
  based->bases = std::make_shared<VersionBases>("m@2", "m@1", std::move(pairs));
  based->expect_comparisons();
  one.queue.want(based, 0);
  one.arrive(*one.queue.take());
  one.queue.want_ahead(based, {1, 1 + 2 * kUnits});
  for (const std::size_t first : {std::size_t{1}, 1 + kUnits}) {
    const auto task = one.queue.take();
    REQUIRE(task);
    CHECK(task->unit == first);
    CHECK(task->end == first + 1);
  }
  CHECK(!one.queue.take());
}

TEST_CASE("a reader takes its own unit if that one is small and waits alone") {
  Queued one;
  const auto small = made_transfer(one.store, {100, 2 * kDigestChunk});
  const auto own = [](const Transfer&, std::size_t) { return true; };
  one.queue.want(small, 1);
  CHECK(!one.queue.take_own(own));  // a large unit
  const auto large = one.queue.take();
  REQUIRE(large);
  one.queue.want(small, 0);
  CHECK(!one.queue.take_own([](const Transfer&, std::size_t) { return false; }));
  const auto task = one.queue.take_own(own);
  REQUIRE(task);
  CHECK(task->unit == 0);
  CHECK(small->state(0) == UnitState::running);
  CHECK(!one.queue.take_own(own));
}

TEST_CASE("units that equal the base are copied by one worker while others fetch, and fetched if the base is left") {
  Queued one;
  one.source->ready = Readiness::busy;
  one.queue.want_ahead(one.transfer, {0, 8});
  for (std::size_t unit = 2; unit < 8; ++unit) one.transfer->set_same(unit, true);
  one.queue.compared(one.transfer, {0, 8});
  const auto task = one.queue.take();
  REQUIRE(task);
  CHECK(task->same);
  CHECK(task->unit == 2);
  for (std::size_t unit = task->unit; unit < task->end; ++unit) {
    one.transfer->set_same(unit, false);
    one.transfer->put_back(unit);
    one.queue.add(one.transfer, unit, task->traffic);
  }
  one.queue.ended(*task);
  one.queue.leave_same(*task);
  for (std::size_t unit = 0; unit < 8; ++unit) CHECK(!one.transfer->is_same(unit));
  CHECK(!one.queue.take());
  CHECK(one.queue.units() == 8);
}

TEST_CASE("units that wait for a comparison are in no queue, and come one by one while the first ones fail") {
  Based one;
  one.transfer->may_swarm = false;
  one.queue.want_ahead(one.transfer, {0, 8});
  CHECK(one.transfer->state(0) == UnitState::queued);
  CHECK(one.states_from(1) == std::vector(7, UnitState::held));
  CHECK(one.queue.units() == 8);
  auto task = one.queue.take();
  REQUIRE(task);
  CHECK(task->unit == 0);
  CHECK(task->end == 1);
  CHECK(one.queue.is_idle());
  CHECK(one.queue.has(*one.transfer));
  one.transfer->fail(0, {Errc::io, "its disk fails"});
  one.queue.ended(*task);
  CHECK(one.states_from(1, 2) == std::vector{UnitState::queued, UnitState::held});

  task = one.queue.take();
  REQUIRE(task);
  CHECK(task->unit == 1);
  one.queue.want_ahead(one.transfer, {0, 8});  // the unit that failed is wanted again
  CHECK(one.transfer->state(0) == UnitState::held);
  one.transfer->set_same(2, true);
  one.transfer->compared(0, {});
  one.queue.compared(one.transfer, {0, 8});
  one.arrive(*task);
  CHECK(one.states_from(2, 6) == std::vector(6, UnitState::queued));
  CHECK(one.queue.units() == 7);
  task = one.queue.take();
  REQUIRE(task);
  CHECK(task->same);
  CHECK(task->unit == 2);
  CHECK(task->end == 3);
  task = one.queue.take();
  REQUIRE(task);
  CHECK(!task->same);
  CHECK(task->unit == 0);
  CHECK(one.wanted().empty());
}

TEST_CASE("units that were held come before units of other blobs that were queued meanwhile") {
  Based one;
  one.transfer->may_swarm = false;
  one.queue.want_ahead(one.transfer, {0, 3});
  auto task = one.queue.take();
  REQUIRE(task);
  const auto other = made_transfer(one.store, {kDigestChunk}, 2);
  one.queue.want_ahead(other, {0, 1});
  one.transfer->compared(0, {});
  one.queue.compared(one.transfer, {0, 8});
  one.arrive(*task);
  task = one.queue.take();
  REQUIRE(task);
  CHECK(task->transfer == one.transfer);
  CHECK(task->unit == 1);
}

TEST_CASE("a reader gets a unit that waits for a comparison, and another unit of the blob is not requested meanwhile") {
  Based one;
  one.transfer->may_swarm = false;
  one.queue.want_ahead(one.transfer, {0, 8});
  one.queue.want(one.transfer, 5);
  auto task = one.queue.take();
  REQUIRE(task);
  CHECK(task->unit == 5);
  CHECK(task->traffic == Traffic::foreground);
  CHECK(!one.queue.take());  // the first unit, which is queued ahead of readers
  one.transfer->fail(5, {Errc::io, "its disk fails"});
  one.queue.ended(*task);
  task = one.queue.take();
  REQUIRE(task);
  CHECK(task->unit == 0);
  CHECK(one.states_from(1, 4) == std::vector(4, UnitState::held));
}

TEST_CASE("of a blob with a base one unit joins the swarm, and the others once the blob is compared, or are copied") {
  Based one;
  one.queue.want_ahead(one.transfer, {0, 8});
  CHECK(one.transfer->state(0) == UnitState::in_swarm);
  CHECK(one.states_from(1) == std::vector(7, UnitState::held));
  CHECK(one.wanted() == Wanted{{0, 1}});
  CHECK(one.queue.units() == 8);
  CHECK(one.queue.is_idle());
  one.queue.want(one.transfer, 5);  // a reader leaves it to the swarm
  CHECK(one.transfer->state(5) == UnitState::held);
  one.queue.want_ahead(one.transfer, {0, 8});
  CHECK(one.wanted().empty());

  for (std::size_t unit = 1; unit < 6; ++unit) one.transfer->set_same(unit, true);
  one.transfer->compared(0, {});
  one.queue.compared(one.transfer, {0, 8});
  CHECK(one.wanted() == Wanted{{6, 2}});
  CHECK(one.states_from(1, 5) == std::vector(5, UnitState::queued));
  const auto task = one.queue.take();
  REQUIRE(task);
  CHECK(task->same);
  CHECK(task->unit == 1);
}

TEST_CASE("a unit that equals its base joins no swarm, also if a read of it fails") {
  Based one;
  one.transfer->compared(0, {});
  one.transfer->set_same(2, true);
  CHECK(one.swarm.takes(*one.transfer, 1));
  CHECK(!one.swarm.takes(*one.transfer, 2));
  CHECK(one.swarm.has_swarm(*one.transfer));
  for (const std::size_t unit : {1, 2}) one.transfer->begin(unit);
  CHECK(one.swarm.put_back(one.transfer, 1));
  CHECK(!one.swarm.put_back(one.transfer, 2));
  CHECK(one.states_from(1, 2) == std::vector{UnitState::in_swarm, UnitState::queued});
}

TEST_CASE("units of a blob with a base wait while a worker fetches one of them, and are wanted if that fails") {
  Based one;
  one.queue.want_now(one.transfer, 3);
  const auto task = one.queue.take();
  REQUIRE(task);
  CHECK(task->unit == 3);
  CHECK(task->end == 4);
  one.queue.want_ahead(one.transfer, {0, 3});
  CHECK(one.wanted().empty());
  CHECK(one.transfer->state(0) == UnitState::held);
  one.transfer->fail(3, {Errc::io, "its disk fails"});
  one.queue.ended(*task);
  CHECK(one.wanted() == Wanted{{0, 1}});
  CHECK(one.states_from(0, 3) == std::vector{UnitState::in_swarm, UnitState::held, UnitState::held});
}

TEST_CASE("held units come by the ordinary way if their swarm is left, and are wanted no more if nobody reads them") {
  for (const bool is_read : {true, false}) {
    CAPTURE(is_read);
    Based one;
    one.transfer->is_read = is_read;
    one.queue.want_ahead(one.transfer, {0, 3});
    one.queue.leave_swarm(one.transfer->manifest);
    CHECK(one.queue.has(*one.transfer) == is_read);
    CHECK(one.queue.units() == (is_read ? 3U : 0U));
    const auto task = one.queue.take();
    REQUIRE(task.has_value() == is_read);
    if (is_read) {
      CHECK(task->unit == 0);
      CHECK(one.states_from(1, 2) == std::vector(2, UnitState::held));
      one.transfer->compared(0, {});
      one.queue.compared(one.transfer, {0, 8});
      one.arrive(*task);
    }
    CHECK(one.states_from(1, 2) == std::vector(2, is_read ? UnitState::queued : UnitState::idle));
  }
}

}  // namespace weft::testing
