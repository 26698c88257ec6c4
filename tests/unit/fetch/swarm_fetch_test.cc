// Fetches of large versions by a swarm that the tests control.
#include "fetch/swarm_fetch.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <optional>
#include <vector>

#include "fake_swarms.h"
#include "os/sys.h"
#include "weft/store/snapshot.h"

namespace weft::testing {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kChunks = 40;

// An origin that counts chunks, and fails or gives wrong bytes so many times.
class OriginReads final : public TwinsReads {
 public:
  using TwinsReads::TwinsReads;
  std::string_view name() const override { return "origin"; }
  bool reads_named() const override { return true; }
  Result<SourceBytes> read(const Digest& manifest, std::span<const ChunkRun> runs, Deadline deadline,
                           ReadAid& aid) override {
    if (aid.offered) ++offered;
    if (fails > 0 && fails-- > 0) return Error{Errc::io, "fake: a disk error"};
    chunks += static_cast<int>(chunks_of(runs).size());
    auto got = twin_->read(manifest, runs, deadline, aid);
    if (got.ok() && wrong > 0 && wrong-- > 0) got->memory[0] ^= std::byte{1};
    return got;
  }
  std::atomic<int> chunks = 0, offered = 0, fails = 0, wrong = 0;
};

// A large version that is away, and a fetcher with a swarm.
struct Scene {
  Away away;
  std::shared_ptr<OfferSource> source = std::make_shared<OfferSource>(away.twin);
  std::shared_ptr<OriginReads> origin;  // null: none
  FakeSwarms swarms;
  FetchOptions options;
  std::optional<Fetcher> fetcher;

  explicit Scene(std::size_t chunks = kChunks) : Scene(std::vector<std::size_t>(chunks, kDigestChunk)) {}
  explicit Scene(const std::vector<std::size_t>& blobs) : away(blobs) { options.swarms = &swarms; }
  void open() {
    std::vector<std::shared_ptr<BlobSource>> sources{source};
    if (origin) sources.push_back(origin);
    fetcher.emplace(away.store, away.store, sources, options);
  }
  Result<std::vector<Run>> bring_all() { return fetcher->bring({away.version, 0, {0, away.file.size}, 0, true}); }
  Digest manifest() { return must(must(away.store.snapshot())->version(away.version)).manifest; }
  ChunkRun chunk(std::size_t number) const { return {away.file.extents[number].id, 0, 1}; }
  Chunk name(std::size_t number) const { return {away.file.extents[number].id, 0}; }
  // A reader asks for bytes of one chunk, which is left to the swarm. The swarm brings it.
  void read_by_swarm(std::size_t number, std::uint64_t ahead = 0) {
    auto read = std::async(std::launch::async, [&] {
      return away.bring(*fetcher, {number * kDigestChunk, kDigestChunk}, ahead).ok();
    });
    CHECK(swarms.wait_until([&] { return swarms.waiting(name(number)) == 1; }));
    swarms.offer(manifest(), {chunk(number)});
    CHECK(read.get());
    CHECK(swarms.wait_until([&] { return swarms.waiting(name(number)) == 0; }));
  }
  void check_whole() {
    const auto pieces = bring_all();
    REQUIRE_MESSAGE(pieces.ok(), (pieces.ok() ? "" : pieces.error().message));
    CHECK(away.text(*pieces, {0, away.file.size}) == away.bytes);
  }
};

// The second version of one blob. Its first kSame chunks are those of the first version, which is local.
struct NextVersion : Scene {
  static constexpr std::size_t kSame = 30;
  std::atomic<int> damaged = 0;
  ContentId base, blob;

  NextVersion() : Scene(std::vector<std::size_t>{kChunks * kDigestChunk}) {
    options.damaged = [this](const ContentId&) { ++damaged; };
    open();
    swarms.gives = true;
    check_whole();
    REQUIRE(swarms.wait_until([&] { return swarms.arrivals == static_cast<int>(kChunks); }));
    REQUIRE(fetcher->wait_indexed(away.version).ok());
    CHECK(!swarms.coded);
    base = away.file.extents.front().id;
    away.change({kSame * kDigestChunk});
    blob = away.file.extents.front().id;
    source->offered = source->ordinary = 0;
    swarms.arrivals = 0;
  }
  ~NextVersion() { fetcher.reset(); }  // it calls options.damaged
  ChunkRun part(std::size_t chunk) const { return {blob, chunk, 1}; }
  // The chunks of the version that the swarm was asked for; a condition of wait_until().
  std::size_t wanted() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(swarms.wanted(), [&](const Chunk& chunk) { return chunk.first == blob; }));
  }
  bool wants(std::size_t chunk) const { return swarms.wanted().contains({blob, chunk}); }
  void damage_base() {
    const auto place = must(away.store.open_blob(base));
    const std::string path = away.store.pack_path(place.pack->id());
    std::string pack = read_text(path);
    for (std::size_t chunk = 0; chunk < kSame; ++chunk) pack[place.offset + chunk * kDigestChunk] ^= 1;
    write_file(path, pack);
  }
};
}  // namespace

TEST_CASE("a large version comes by its swarm, in the order of its offers") {
  Scene scene;
  scene.swarms.gives = true;
  scene.open();
  scene.check_whole();
  CHECK(scene.source->ordinary == 0);
  CHECK(scene.source->offered == static_cast<int>(kChunks));
  CHECK(scene.source->strangers == 0);
  CHECK(scene.swarms.wait_until([&] { return scene.swarms.arrivals == static_cast<int>(kChunks); }));
  CHECK(scene.swarms.drops == 0);
  scene.fetcher.reset();  // its workers announce the last chunks
  CHECK(scene.source->announced == static_cast<int>(kChunks));
  CHECK(scene.swarms.left() <= 1);  // at the end
}

TEST_CASE("units that are offered by name come from the origin, each once") {
  Scene scene;
  scene.origin = std::make_shared<OriginReads>(scene.away.twin);
  scene.swarms.gives = scene.swarms.names = true;
  scene.open();
  scene.check_whole();
  CHECK(scene.origin->chunks == static_cast<int>(kChunks));
  CHECK(scene.origin->offered == 0);
  CHECK(scene.source->ordinary == 0);
  CHECK(scene.source->offered == 0);
  CHECK(scene.swarms.wait_until([&] { return scene.swarms.arrivals == static_cast<int>(kChunks); }));
  CHECK(scene.swarms.drops == 0);
  scene.fetcher.reset();
  CHECK(scene.source->announced == static_cast<int>(kChunks));  // so the node can send them
}

TEST_CASE("units whose read at the origin fails, or is wrong, are brought again, and blame nobody") {
  Scene scene;
  scene.origin = std::make_shared<OriginReads>(scene.away.twin);
  scene.origin->fails = 2;
  scene.origin->wrong = 1;
  scene.swarms.gives = scene.swarms.names = true;
  scene.open();
  scene.check_whole();
  CHECK(scene.swarms.drops == 3);
  CHECK(scene.swarms.refutations == 0);
  CHECK(scene.source->ordinary == 0);
  CHECK(scene.source->offered == 0);
}

TEST_CASE("a young version joins its swarm at once, also if its publisher is away") {
  for (const bool is_there : {true, false}) {
    Scene scene;
    scene.swarms.gives = true;
    scene.options.is_there = [=](const std::string&) { return is_there; };
    scene.away.publish(now_ns());
    scene.open();
    scene.check_whole();
    CHECK(scene.source->ordinary == 0);
    CHECK(scene.source->offered == static_cast<int>(kChunks));
  }
}

TEST_CASE("a small version and a version that a swarm refuses come by the ordinary way") {
  for (const bool is_small : {true, false}) {
    Scene scene(is_small ? 32 : kChunks);
    scene.swarms.gives = true;
    scene.swarms.refuses = !is_small;
    scene.open();
    scene.check_whole();
    CHECK(scene.source->offered == 0);
    CHECK(scene.swarms.wanted().empty());
  }
}

TEST_CASE("a reader waits for a unit in a swarm, and soon gets it by the ordinary way") {
  Scene scene;
  scene.open();
  scene.read_by_swarm(0, scene.away.file.size - kDigestChunk);
  CHECK(scene.swarms.wait_until([&] { return scene.swarms.wanted().size() == kChunks; }));
  scene.read_by_swarm(5);
  CHECK(scene.source->offered == 2);
  CHECK(scene.source->ordinary == 0);
  // This read needs a unit at the start of the file and one behind the start.
  CHECK(scene.away.bring(*scene.fetcher, {4 * kDigestChunk - 10, 20}).ok());
  CHECK(scene.source->ordinary == 2);
  CHECK(scene.source->offered == 2);
  CHECK(scene.swarms.wait_until(
      [&] { return scene.swarms.waiting(scene.name(3)) == 0 && scene.swarms.waiting(scene.name(4)) == 0; }));
  CHECK(scene.swarms.waited() == 4);
  CHECK(scene.swarms.left() == 0);
}

TEST_CASE("the start of a file comes by the swarm, and other units that a reader waits for come at once") {
  Scene scene;
  scene.options.patience = kPatience;
  scene.swarms.partners = true;
  scene.open();
  scene.read_by_swarm(3);
  CHECK(scene.source->ordinary == 0);
  CHECK(scene.away.bring(*scene.fetcher, {4 * kDigestChunk, 10}).ok());
  CHECK(scene.away.bring(*scene.fetcher, {20 * kDigestChunk, 10}, kDigestChunk).ok());  // too late for a start
  CHECK(scene.source->ordinary == 2);
  CHECK(scene.swarms.wait_until([&] { return scene.swarms.wanted() == Chunks{scene.name(3), scene.name(21)}; }));
  CHECK(scene.swarms.waited() == 1);
  scene.fetcher.reset();
  CHECK(scene.swarms.looks() == 0);  // no reader read in order
}

TEST_CASE("a read of one tensor begins no swarm, and uses one that the node is in") {
  Scene scene;
  scene.options.patience = kPatience;
  scene.open();
  const auto read_tensor = [&](std::size_t chunk, std::uint64_t ahead) {
    return scene.fetcher->bring({scene.away.version, 0, {chunk * kDigestChunk, 10}, ahead, false, true}).ok();
  };
  CHECK(read_tensor(1, kDigestChunk));
  CHECK(read_tensor(2, 0));
  CHECK(scene.source->ordinary == 2);
  scene.read_by_swarm(0);                                                               // a read of a file begins one
  CHECK(scene.away.bring(*scene.fetcher, {20 * kDigestChunk, 10}, kDigestChunk).ok());  // so that the node stays in it
  CHECK(scene.swarms.wait_until([&] { return scene.swarms.wanted() == Chunks{scene.name(0), scene.name(21)}; }));
  auto read = std::async(std::launch::async, [&] { return read_tensor(3, 0); });
  CHECK(scene.swarms.wait_until([&] { return scene.swarms.waiting(scene.name(3)) == 1; }));
  scene.swarms.offer(scene.manifest(), {scene.chunk(3)});
  CHECK(read.get());
  CHECK(scene.source->ordinary == 3);
  CHECK(scene.source->offered == 2);
}

TEST_CASE("a whole tensor comes without a swarm, also with a base") {
  NextVersion next;
  REQUIRE(next.fetcher->bring({next.away.version, 0, {0, next.away.file.size}, 0, true, true}).ok());
  CHECK(next.source->offered == 0);
  CHECK(next.source->ordinary == static_cast<int>(kChunks - NextVersion::kSame + 1));
  CHECK(next.swarms.wait_until([&] { return next.wanted() == 0; }));
  next.check_whole();
}

TEST_CASE("the start of a file comes by the ordinary way if the swarm refuses its version") {
  Scene scene;
  scene.options.patience = kPatience;
  scene.swarms.refuses = true;
  scene.open();
  CHECK(scene.away.bring(*scene.fetcher, {0, 10}).ok());
  CHECK(scene.away.bring(*scene.fetcher, {kDigestChunk, 10}).ok());  // the fetcher does not ask the swarm again
  CHECK(scene.source->ordinary == 2);
  CHECK(scene.source->offered == 0);
  CHECK(scene.swarms.wait_until([&] { return scene.swarms.left() == 1; }));
}

TEST_CASE("a reader in order has its file fetched ahead while other nodes fetch it too") {
  constexpr std::size_t kAtStart = 64;  // chunks
  Scene scene(kAtStart + 8);
  scene.options.patience = kPatience;
  scene.open();
  scene.read_by_swarm(0, kDigestChunk);
  scene.swarms.tell();
  CHECK(scene.swarms.wait_until([&] { return scene.swarms.looks() >= 2; }));
  CHECK(scene.swarms.wait_until([&] { return scene.swarms.wanted().size() == 2; }));
  scene.swarms.partners = true;
  scene.swarms.tell();
  CHECK(scene.swarms.wait_until([&] { return scene.swarms.wanted().size() == kAtStart; }));
  scene.read_by_swarm(3, kDigestChunk);
  CHECK(scene.swarms.wait_until([&] { return scene.swarms.wanted().size() == kAtStart; }));
  scene.read_by_swarm(4, kDigestChunk);
  CHECK(scene.swarms.wait_until([&] { return scene.swarms.wanted().size() == kAtStart + 8; }));
  CHECK(scene.source->ordinary == 0);
  CHECK(scene.source->offered == 3);
}

TEST_CASE("a reader in order has its file fetched ahead if other nodes are expected") {
  Scene scene;
  scene.options.patience = kPatience;
  scene.open();
  scene.read_by_swarm(0, kDigestChunk);
  CHECK(scene.swarms.wait_until([&] { return scene.swarms.wanted().size() == 2; }));
  FetchPolicy policy;
  policy.expect_others = true;
  scene.fetcher->set_policy(policy);
  CHECK(scene.swarms.wait_until([&] { return scene.swarms.wanted().size() == kChunks; }));
  CHECK(scene.source->ordinary == 0);
  CHECK(scene.source->offered == 1);
}

TEST_CASE("a file that is fetched ahead does not evict what the cache has") {
  Scene scene;
  scene.options.patience = kPatience;
  scene.swarms.partners = true;
  scene.open();
  FetchPolicy policy;
  policy.cache_max = kChunks / 2 * kDigestChunk;
  scene.fetcher->set_policy(policy);
  scene.read_by_swarm(0, kDigestChunk);
  CHECK(scene.swarms.wait_until([&] { return scene.swarms.looks() == 1; }));
  scene.read_by_swarm(1, 10);
  CHECK(scene.swarms.wait_until([&] { return scene.swarms.looks() == 2; }));  // so the first look is over
  const Chunks asked{scene.name(0), scene.name(1), scene.name(2)};
  CHECK(scene.swarms.wait_until([&] { return scene.swarms.wanted() == asked; }));
  CHECK(scene.swarms.left() == 0);
}

TEST_CASE("a swarm that gives nothing is left, and not joined again at once") {
  Scene scene;
  scene.options.patience = 300ms;
  scene.open();
  scene.check_whole();
  CHECK(scene.source->offered == 0);
  CHECK(scene.source->ordinary == static_cast<int>(kChunks));
  CHECK(scene.swarms.wait_until([&] { return scene.swarms.left() == 1; }));
  CHECK(scene.swarms.waited() == 0);  // a reader of the whole file waits for no unit in particular
}

TEST_CASE("a wrong chunk of an offered unit is not kept, and its sender is reported") {
  Scene scene;
  scene.swarms.gives = true;
  scene.source->wrong = 2;
  scene.open();
  scene.check_whole();
  CHECK(scene.swarms.refutations == 2);
  CHECK(scene.swarms.drops == 2);
  CHECK(scene.source->offered == static_cast<int>(kChunks) + 2);
  CHECK(scene.source->ordinary == 0);
}

TEST_CASE("a swarm is left if the cache has no space for its units") {
  Scene scene;
  scene.options.disk = [] { return DiskSpace{1000 * kDigestChunk, 0, 0}; };
  scene.swarms.gives = true;
  scene.open();
  const auto brought = scene.bring_all();
  REQUIRE(!brought.ok());
  CHECK(brought.error().code == Errc::no_space);
  CHECK(scene.swarms.wait_until([&] { return scene.swarms.left() > 0; }));
  CHECK(scene.swarms.drops > 0);
  CHECK(scene.swarms.arrivals == 0);
  CHECK(scene.away.bring(*scene.fetcher, {0, 10}).ok());  // a reader's bytes pass
}

TEST_CASE("an offered unit that is local already is not read") {
  Scene scene;
  scene.open();
  REQUIRE(scene.away.bring(*scene.fetcher, {5 * kDigestChunk, kDigestChunk}, 30 * kDigestChunk).ok());
  scene.swarms.offer(scene.manifest(), {scene.chunk(5)});
  CHECK(scene.swarms.wait_until([&] { return scene.swarms.arrivals == 1; }));
  CHECK(scene.source->offered == 0);
}

TEST_CASE("a unit of several chunks is read in parts, without those that are local") {
  Scene scene;
  scene.open();
  REQUIRE(scene.away.bring(*scene.fetcher, {5 * kDigestChunk, kDigestChunk}, 30 * kDigestChunk).ok());
  std::vector<ChunkRun> runs;
  for (std::size_t i = 0; i < 12; ++i) runs.push_back(scene.chunk(i));
  scene.swarms.offer(scene.manifest(), runs);
  CHECK(scene.swarms.wait_until([&] { return scene.swarms.arrivals == 1; }));
  CHECK(scene.source->offered == 11);
  CHECK(scene.source->strangers == 0);
  CHECK(scene.swarms.drops == 0);
  const auto places = must(scene.fetcher->here(runs));
  CHECK(std::ranges::all_of(places, [](const OpenPlace& place) { return place.pack != nullptr; }));
}

TEST_CASE("a version with a base comes by its swarm, without the chunks that equal the base") {
  NextVersion next;
  constexpr std::size_t kCome = kChunks - NextVersion::kSame + 1;  // one chunk is compared first
  next.check_whole();
  CHECK(next.source->offered == static_cast<int>(kCome));
  CHECK(next.source->based == static_cast<int>(kCome));
  CHECK(next.source->ordinary == 0);
  CHECK(next.swarms.coded);
  CHECK(next.swarms.wait_until([&] { return next.wanted() == kCome; }));
  CHECK(next.swarms.wait_until([&] { return next.swarms.arrivals == static_cast<int>(kCome); }));
  CHECK(next.swarms.drops == 0);
  CHECK(next.fetcher->status().coded.same_bytes == (NextVersion::kSame - 1) * kDigestChunk);
  next.fetcher.reset();
  CHECK(next.source->announced == 2 * static_cast<int>(kChunks));  // also copies, so that the node can send them
}

TEST_CASE("a reader in order gets equal chunks from the base, also those that it asks for after the comparison") {
  NextVersion next;
  for (std::size_t chunk = 0; chunk < kChunks; ++chunk)
    REQUIRE(next.away.bring(*next.fetcher, {chunk * kDigestChunk, kDigestChunk}, 4 * kDigestChunk).ok());
  CHECK(next.fetcher->status().coded.same_bytes == (NextVersion::kSame - 1) * kDigestChunk);
  CHECK(next.source->offered + next.source->ordinary == static_cast<int>(kChunks - NextVersion::kSame + 1));
}

TEST_CASE("a version with a base comes whole by its swarm if no base is wanted") {
  NextVersion next;
  next.fetcher->set_policy({UINT64_MAX, ColdPolicy::automatic, false});
  next.check_whole();
  CHECK(next.source->offered == static_cast<int>(kChunks));
  CHECK(next.source->based == 0);
  CHECK(!next.swarms.coded);
  CHECK(next.fetcher->status().coded.same_bytes == 0);
}

TEST_CASE("a wrong difference of an offered unit is replaced by plain bytes of its sender, which is not banned") {
  for (const bool damaged : {false, true}) {
    CAPTURE(damaged);
    NextVersion next;
    if (damaged) next.damage_base();
    next.source->miscoded_next = 1;
    next.check_whole();
    CHECK(next.swarms.refutations == 0);
    CHECK(next.swarms.drops == 0);
    CHECK(next.source->ordinary == 0);
    CHECK(next.source->miscodings == (damaged ? 0 : 1));
    CHECK(next.damaged == (damaged ? 1 : 0));
    CHECK(next.fetcher->status().coded.failed == 1);
    // A damaged base is not used any more.
    const std::size_t same = damaged ? 0 : NextVersion::kSame - 1;
    CHECK(next.fetcher->status().coded.same_bytes == same * kDigestChunk);
    CHECK(next.source->offered == static_cast<int>(kChunks - same) + 1);
  }
}

TEST_CASE("wrong plain bytes of a version with a base ban their sender") {
  NextVersion next;
  next.source->wrong = 1;
  next.check_whole();
  CHECK(next.swarms.refutations == 1);
  CHECK(next.swarms.drops == 1);
  CHECK(next.source->ordinary == 0);
}

TEST_CASE("a reader gets a chunk that is held for a comparison, and the comparison then needs no other chunk") {
  NextVersion next;
  next.swarms.gives = false;
  auto all = std::async(std::launch::async, [&] { return next.bring_all().ok(); });
  REQUIRE(next.swarms.wait_until([&] { return next.wants(0); }));
  CHECK(next.swarms.wait_until([&] { return next.wanted() == 1; }));
  CHECK(next.away.bring(*next.fetcher, {2 * kDigestChunk, 10}).ok());
  CHECK(next.source->ordinary >= 1);
  CHECK(next.source->offered == 0);
  next.swarms.offer(next.manifest(), {next.part(0)});
  for (std::size_t chunk = NextVersion::kSame; chunk < kChunks; ++chunk)
    next.swarms.offer(next.manifest(), {next.part(chunk)});
  CHECK(all.get());
  next.check_whole();
  CHECK(next.fetcher->status().coded.same_bytes > 0);
}

TEST_CASE("a unit of several chunks is read without those that are copied from the base") {
  NextVersion next;
  next.swarms.gives = false;
  auto all = std::async(std::launch::async, [&] { return next.bring_all().ok(); });
  REQUIRE(next.swarms.wait_until([&] { return next.wants(0); }));
  next.swarms.offer(next.manifest(), {next.part(0)});
  REQUIRE(next.swarms.wait_until([&] { return next.wants(kChunks - 1); }));
  const std::size_t before = 4;  // same chunks before the first other one
  next.swarms.offer(next.manifest(), {{next.blob, NextVersion::kSame - before, before + kChunks - NextVersion::kSame}});
  CHECK(all.get());
  CHECK(next.source->offered == 1 + static_cast<int>(kChunks - NextVersion::kSame));
  CHECK(next.swarms.wait_until([&] { return next.swarms.arrivals == 2; }));
  CHECK(next.swarms.drops == 0);
  next.check_whole();
}

TEST_CASE("a fetcher ends while a swarm owes it units, and leaves the swarm") {
  Scene scene;
  scene.open();
  scene.read_by_swarm(0, scene.away.file.size - kDigestChunk);
  CHECK(scene.swarms.wait_until([&] { return scene.swarms.wanted().size() == kChunks; }));
  CHECK(scene.fetcher->status().waiting == kChunks - 1);
  scene.fetcher->let_go();  // the transfer waits for its swarm, and stays
  CHECK(scene.fetcher->status().transfers == 1);
  scene.fetcher.reset();
  CHECK(scene.swarms.left() > 0);
}

TEST_CASE("who reads one shard of a version from the start gets the others too, and no other file") {
  Shards shards(3);
  FakeSwarms swarms;
  swarms.gives = true;
  const auto source = std::make_shared<OfferSource>(shards.twin);
  FetchOptions options;
  options.swarms = &swarms;
  Fetcher fetcher(shards.store, shards.store, {source}, options);
  REQUIRE(fetcher.bring({shards.version, 1, {0, Shards::kEach * kDigestChunk}, 0, true}).ok());
  CHECK(swarms.wait_until([&] { return swarms.arrivals == static_cast<int>(3 * Shards::kEach); }));
  CHECK(source->ordinary == 0);
  REQUIRE(fetcher.wait_indexed(shards.version).ok());
  for (std::size_t file = 0; file < 3; ++file) CHECK(shards.store.open_blob(shards.blob(file)).ok());
  CHECK(!shards.store.open_blob(shards.blob(3)).ok());
}

TEST_CASE("a reader in order gets the other shards too while other nodes fetch the version") {
  Shards shards(3);
  FakeSwarms swarms;
  FetchOptions options;
  options.swarms = &swarms;
  options.patience = kPatience;
  Fetcher fetcher(shards.store, shards.store, {std::make_shared<OfferSource>(shards.twin)}, options);
  auto read = std::async(std::launch::async, [&] {
    return fetcher.bring({shards.version, 1, {0, kDigestChunk}, kDigestChunk}).ok();
  });
  CHECK(swarms.wait_until([&] { return swarms.wanted().size() == 2; }));
  for (int looks = swarms.looks(), i = 0; i < 3; ++i) {  // a round of the thread looks twice: for the shard, for others
    swarms.tell();
    CHECK(swarms.wait_until([&] { return swarms.looks() >= looks + 2 * (i + 1); }));
  }
  CHECK(fetcher.status().transfers == 1);
  swarms.partners = true;
  swarms.tell();
  CHECK(swarms.wait_until([&] { return swarms.wanted().size() == 3 * Shards::kEach; }));
  const auto manifest = must(must(shards.store.snapshot())->version(shards.version)).manifest;
  swarms.offer(manifest, {{shards.blob(1), 0, 1}});
  CHECK(read.get());
}

TEST_CASE("the other shards of a version do not evict what the cache has") {
  Shards shards(3);
  FakeSwarms swarms;
  swarms.gives = true;
  const auto source = std::make_shared<OfferSource>(shards.twin);
  FetchOptions options;
  options.swarms = &swarms;
  Fetcher fetcher(shards.store, shards.store, {source}, options);
  FetchPolicy policy;
  policy.cache_max = (2 * Shards::kEach - 1) * kDigestChunk;
  fetcher.set_policy(policy);
  const int one = Shards::kEach;
  REQUIRE(fetcher.bring({shards.version, 0, {0, Shards::kEach * kDigestChunk}, 0, true}).ok());
  CHECK(swarms.wait_until([&] { return swarms.arrivals == one; }));
  REQUIRE(fetcher.bring({shards.version, 3, {0, kDigestChunk}, 0, true}).ok());
  CHECK(swarms.wait_until([&] { return swarms.arrivals == one + 1; }));
  CHECK(swarms.wait_until([&] { return swarms.wanted().size() == Shards::kEach + 1; }));
}

TEST_CASE("the shards of a version are large files of weights whose names differ in digits") {
  Manifest manifest;
  const auto add = [&](const char* path, std::uint64_t size, const char* format, bool has_tensors) {
    File file;
    file.path = path;
    file.size = size;
    file.format = format;
    if (has_tensors) file.tensors.emplace_back();
    manifest.files.push_back(std::move(file));
  };
  constexpr std::uint64_t kLarge = 2U << 20U;
  add("config.json", 100, "", false);
  add("model-1-of-3.safetensors", kLarge, "safetensors", true);
  add("model-2-of-3.safetensors", kLarge, "safetensors", true);
  add("model-3-of-3.safetensors", 100, "safetensors", true);  // small
  add("model-1-of-3.bin", kLarge, "pytorch", true);
  add("old/model-1-of-3.safetensors", kLarge, "safetensors", true);
  add("model-4-of-3.safetensors", kLarge, "safetensors", false);
  CHECK(shards_of(manifest, 1) == std::vector<std::uint32_t>{2});
  CHECK(shards_of(manifest, 2) == std::vector<std::uint32_t>{1});
  for (const std::uint32_t file : {0U, 3U, 4U, 5U, 6U}) CHECK(shards_of(manifest, file).empty());
}

}  // namespace weft::testing
