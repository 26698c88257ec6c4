#include "fetch/swarm_reads.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "fake_swarms.h"
#include "fetch/fetch_bases.h"
#include "fetch/fetched_bytes.h"
#include "fetch/same_copies.h"
#include "os/sys.h"

namespace weft::testing {
namespace {

constexpr std::size_t kEach = 11;  // chunks of a shard

FetchOptions options_with(FakeSwarms& swarms) {
  FetchOptions options;
  options.patience = kPatience;
  options.swarms = &swarms;
  return options;
}

// The parts of a Fetcher, without its threads: the test does what readers and workers do. The version has three shards.
struct Parts {
  Shards shards;
  FakeSwarms swarms;
  std::shared_ptr<OfferSource> source = std::make_shared<OfferSource>(shards.twin);
  const FetchOptions options = options_with(swarms);
  FetchSources sources{{source}, options.patience};
  ManifestFetch manifests{shards.store, shards.store, sources, options};
  FetchState state{options, sources, [this] { reads.wake(); }};
  FetchedBytes bytes{shards.store, shards.store, sources, state};
  FetchBases bases{{shards.store, manifests, sources, bytes, [](const ContentId&) { return false; }, {}}};
  FetchPlanner planner{shards.store, shards.store, sources, bases, state, options};
  CacheRoom room{shards.store, state, sources, CacheSpace([] { return std::nullopt; })};
  UnitOutcomes outcomes{state, room, options};
  std::shared_ptr<const DecodedVersion> content = must(manifests.content(shards.version));
  SameCopies same{{state, sources, bases, bytes, room, outcomes}};
  SwarmReads reads{SwarmReads::Parts{swarms, state, planner, sources, bases, room, outcomes, same}};

  explicit Parts(std::size_t chunks = kEach) : shards(3, chunks) { bases.allow(false); }

  const Digest& manifest() const { return content->row.manifest; }
  ChunkRun run(std::size_t file, std::uint64_t first, std::uint64_t count) const {
    return {shards.blob(file), first, count};
  }
  // A reader asks for the first chunks of a file. `ahead`: it reads in order, else it wants all of them.
  void read(std::uint32_t file, std::size_t chunks, std::uint64_t ahead = 0) {
    reads.note_read(content, {shards.version, file, {0, chunks * kDigestChunk}, ahead, ahead == 0});
    want(*content, file, chunks);
  }
  void want(const DecodedVersion& of, std::uint32_t file, std::size_t chunks) {
    const Range range{0, chunks * kDigestChunk};
    const auto parts = must(planner.parts_of(of, file, range));
    const MutexLock lock(state.mutex);
    for (const RangePart& part : parts) {
      part.home.transfer->is_read = true;
      state.queue.want_ahead(part.home.transfer, units_in(part.home.transfer->plan, range));
    }
  }
  // As want(), of this version. Returns once the swarm knows of the chunks.
  void join(std::uint32_t file, std::size_t chunks) {
    want(*content, file, chunks);
    CHECK(swarms.wait_until([&] { return swarms.wanted().size() == chunks; }));
  }
  std::shared_ptr<Transfer> transfer(std::size_t file) {
    const MutexLock lock(state.mutex);
    return state.table.find(shards.blob(file))->transfer;
  }
  // A worker reads the next offered unit.
  void read_offered() {
    std::shared_ptr<OfferedUnit> unit;
    {
      UniqueLock lock(state.mutex);
      REQUIRE(
          state.work.wait_for(lock, kLong, [this]() WEFT_REQUIRES(state.mutex) { return state.swarm.has_offer(); }));
      unit = state.swarm.take_offer();
    }
    reads.read(std::move(unit));
  }
  // The thread of `reads` has seen all that happened before the call, and has acted on it.
  void finish_round() {
    for (int i = 0; i < 2; ++i) {  // the first round may have begun before
      int rounds = 0;
      CHECK(swarms.wait_until([&] {
        rounds = swarms.rounds();
        return true;
      }));
      swarms.tell();
      CHECK(swarms.wait_until([&] { return swarms.rounds() > rounds; }));
    }
  }
  std::size_t transfers() {
    const MutexLock lock(state.mutex);
    return state.table.size();
  }
  std::size_t in_swarm() {  // units
    const MutexLock lock(state.mutex);
    return state.swarm.units();
  }
  std::size_t queued() {  // units that come by the ordinary way
    const MutexLock lock(state.mutex);
    return state.queue.units() - state.swarm.units();
  }
  // The local bytes of a run are those of the source.
  void check_bytes(const ChunkRun& of) {
    const OpenPlace place = must(bytes.here(std::span(&of, 1))).front();
    REQUIRE(place.pack);
    std::vector<std::byte> read(of.length());
    REQUIRE(read_exact(place.pack->fd(), place.offset, read, "pack").ok());
    ReadAid none;
    const auto right = must(shards.twin->read(manifest(), std::span(&of, 1), deadline_in(kLong), none));
    CHECK(std::ranges::equal(read, right.bytes()));
  }
};

}  // namespace

TEST_CASE("reads of a version that is too small for a swarm begin no other shard, and look for no partners") {
  Parts one(10);
  REQUIRE(one.content->bytes == kSwarmBytesMin);
  one.swarms.partners = true;
  one.read(0, 10);
  one.read(1, 1, kDigestChunk);
  one.finish_round();
  CHECK(one.transfers() == 2);
  CHECK(one.swarms.wanted().empty());
  CHECK(one.swarms.looks() == 0);
}

TEST_CASE("a lone reader of a whole shard has the other shards begun too, in their order") {
  Parts one;
  one.read(1, kEach);
  CHECK(one.swarms.wait_until([&] { return one.swarms.wanted().size() == 3 * kEach; }));
  CHECK(one.swarms.asked() == std::vector{one.shards.blob(1), one.shards.blob(0), one.shards.blob(2)});
  CHECK(one.transfers() == 3);
}

TEST_CASE("a reader in order has its shard and then the others fetched ahead, but only with partners") {
  Parts one;
  one.read(1, 1, kDigestChunk);
  CHECK(one.swarms.wait_until([&] { return one.swarms.wanted().size() == 1; }));
  one.finish_round();
  CHECK(one.swarms.wanted().size() == 1);
  CHECK(one.transfers() == 1);
  one.swarms.partners = true;
  one.swarms.tell();
  CHECK(one.swarms.wait_until([&] { return one.swarms.wanted().size() == 3 * kEach; }));
  CHECK(one.swarms.asked() == std::vector{one.shards.blob(1), one.shards.blob(0), one.shards.blob(2)});
}

TEST_CASE("a reader in order that expects other nodes has its shard and then the others fetched ahead") {
  Parts one;
  one.reads.expect_others(true);
  one.read(1, 1, kDigestChunk);
  CHECK(one.swarms.wait_until([&] { return one.swarms.wanted().size() == 3 * kEach; }));
  CHECK(one.swarms.asked() == std::vector{one.shards.blob(1), one.shards.blob(0), one.shards.blob(2)});
}

TEST_CASE("a reader of one tensor has nothing else fetched") {
  Parts one;
  one.swarms.partners = true;
  one.reads.note_read(one.content, {one.shards.version, 1, {0, kDigestChunk}, kDigestChunk, false, true});
  one.finish_round();
  CHECK(one.transfers() == 0);
  CHECK(one.swarms.looks() == 0);
}

TEST_CASE("a shard for which the cache has no room is not begun, until a reader asks again") {
  Parts one;
  one.room.set_bound(3 * kEach * kDigestChunk - 1);
  one.read(0, kEach);
  CHECK(one.swarms.wait_until([&] { return one.swarms.wanted().size() == 2 * kEach; }));
  one.finish_round();
  CHECK(one.transfers() == 2);
  one.room.set_bound(UINT64_MAX);
  one.finish_round();
  CHECK(one.transfers() == 2);
  one.read(0, kEach);
  CHECK(one.swarms.wait_until([&] { return one.swarms.wanted().size() == 3 * kEach; }));
}

TEST_CASE("the chunks of an offered unit are kept, and it arrives once") {
  Parts one;
  one.join(0, kEach);
  one.swarms.offer(one.manifest(), {one.run(0, 2, 6)});
  one.read_offered();
  CHECK(one.swarms.arrivals == 1);
  CHECK(one.swarms.drops == 0);
  CHECK(one.source->offered == 6);
  CHECK(one.source->strangers == 0);
  CHECK(one.source->announced == 6);
  CHECK(one.in_swarm() == kEach - 6);
  one.check_bytes(one.run(0, 2, 6));
}

TEST_CASE("a unit arrives only if all its chunks are here") {
  Parts one;
  one.join(0, kEach);
  const auto transfer = one.transfer(0);
  {
    const MutexLock lock(one.state.mutex);
    transfer->begin(2);  // another worker reads it
  }
  one.swarms.offer(one.manifest(), {one.run(0, 0, 5)});
  one.read_offered();
  CHECK(one.swarms.arrivals == 0);
  CHECK(one.swarms.drops == 1);
  CHECK(one.source->offered == 4);
  CHECK(one.source->announced == 4);
  {
    const MutexLock lock(one.state.mutex);
    transfer->arrive(2, {});
  }
  one.swarms.offer(one.manifest(), {one.run(0, 0, 5)});
  one.read_offered();
  CHECK(one.swarms.arrivals == 1);
  CHECK(one.swarms.drops == 1);
  CHECK(one.source->offered == 4);
}

TEST_CASE("the swarm brings a unit again whose read has failed") {
  for (const bool is_wrong : {true, false}) {
    Parts one;
    one.join(0, kEach);
    if (is_wrong)
      one.source->wrong = 1;
    else
      one.shards.twin->vanish();
    one.swarms.offer(one.manifest(), {one.run(0, 0, 3)});
    one.read_offered();
    CHECK(one.swarms.arrivals == 0);
    CHECK(one.swarms.drops == 1);
    CHECK(one.swarms.refutations == static_cast<int>(is_wrong));
    CHECK(one.source->announced == 0);
    CHECK(one.in_swarm() == kEach);
    CHECK(one.queued() == 0);
    if (!is_wrong) continue;
    one.swarms.offer(one.manifest(), {one.run(0, 0, 3)});
    one.read_offered();
    CHECK(one.swarms.arrivals == 1);
    CHECK(one.in_swarm() == kEach - 3);
    one.check_bytes(one.run(0, 0, 3));
    CHECK(one.swarms.left() == 0);
  }
}

TEST_CASE("a unit whose read fails after its swarm was left comes by the ordinary way") {
  Parts one;
  one.join(0, kEach);
  one.source->wrong = 1;
  one.source->before_read = [&] {
    one.swarms.refuses = true;
    one.want(*one.content, 1, 1);
    CHECK(one.swarms.wait_until([&] { return one.swarms.left() == 1; }));
  };
  one.swarms.offer(one.manifest(), {one.run(0, 0, 1)});
  one.read_offered();
  CHECK(one.source->offered == 1);
  CHECK(one.swarms.arrivals == 0);
  CHECK(one.in_swarm() == 0);
  CHECK(one.queued() == kEach + 1);
}

TEST_CASE("a swarm is left if the cache has no space for one of its units") {
  Parts one;
  one.join(0, kEach);
  one.room.set_bound(kDigestChunk / 2);
  one.swarms.offer(one.manifest(), {one.run(0, 0, 1)});
  one.read_offered();
  CHECK(one.swarms.arrivals == 0);
  CHECK(one.swarms.drops == 1);
  CHECK(one.source->offered == 0);
  CHECK(one.swarms.wait_until([&] { return one.swarms.left() == 1; }));
  CHECK(one.in_swarm() == 0);
  CHECK(one.queued() == kEach);
}

TEST_CASE("if a swarm refuses a version, its units come by the ordinary way, and no other shard begins for a while") {
  Parts one;
  one.swarms.refuses = true;
  one.want(*one.content, 0, kEach);
  CHECK(one.swarms.wait_until([&] { return one.swarms.left() == 1; }));
  CHECK(one.in_swarm() == 0);
  CHECK(one.queued() == kEach);
  one.swarms.refuses = false;
  one.swarms.partners = true;
  one.read(1, kEach);
  one.finish_round();
  CHECK(one.transfers() == 2);
  CHECK(one.swarms.wanted().empty());
  CHECK(one.queued() == 2 * kEach);
  const MutexLock lock(one.state.mutex);
  const auto task = one.state.queue.take();
  REQUIRE(task);
  CHECK(task->transfer);
  CHECK(!task->offered);
}

TEST_CASE("the end leaves all swarms, and no call follows") {
  Parts one;
  Manifest other = one.shards.manifest;
  other.files.pop_back();  // still large enough for a swarm
  const auto encoded = encode_manifest(other);
  REQUIRE(encoded.ok());
  one.shards.twin->put_manifest(sha256(*encoded), *encoded);
  const auto second = must(one.manifests.content(one.shards.store.add_version(sha256(*encoded))));
  one.want(*one.content, 0, 1);
  one.want(*second, 2, 1);
  CHECK(one.swarms.wait_until([&] { return one.swarms.wanted().size() == 2; }));
  one.reads.end();
  const std::vector<Digest> left = one.swarms.left_ones();
  CHECK(left.size() == 2);
  CHECK(std::set(left.begin(), left.end()) == std::set{one.manifest(), second->row.manifest});
  const int calls = one.swarms.calls;
  one.want(*one.content, 1, 1);
  one.swarms.tell();
  one.reads.end();
  CHECK(one.swarms.calls == calls);
}

}  // namespace weft::testing
