#include "fetch/same_copies.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "away.h"
#include "fetch/passing_bytes.h"

namespace weft::testing {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kChunks = 4;

// A node that has one blob, in memory.
class OneBlob final : public LocalBytes {
 public:
  explicit OneBlob(std::vector<std::byte> blob)
      : id{blob.size(), tree_sha256(blob)}, digests_(chunk_count(blob.size())) {
    sha256_chunks(blob, digests_);
    bytes = std::move(blob);
  }
  Result<std::vector<OpenPlace>> here(std::span<const ChunkRun> runs) override {
    std::vector<OpenPlace> places;
    for (const ChunkRun& run : runs)
      places.push_back(run.id == id ? OpenPlace{must(passing_pack(bytes)), run.offset()} : OpenPlace{});
    return places;
  }
  Result<std::vector<Digest>> digests(const ContentId& /*id*/) override { return digests_; }

  const ContentId id;
  std::vector<std::byte> bytes;

 private:
  std::vector<Digest> digests_;
};

// A version with one blob whose last chunk differs from its base.
struct Comparing {
  Away away{{kChunks * kDigestChunk}};
  OneBlob base{changed(away.bytes)};
  const ContentId id = away.file.extents.front().id;
  FetchOptions options;
  FetchSources sources{{away.twin}, options.patience};
  ManifestFetch manifests{away.store, away.store, sources, options};
  FetchState state{options, sources, [] {}};
  int damaged = 0;
  FetchBases bases{{away.store, manifests, sources, base, {}, [this](const ContentId&) { ++damaged; }}};
  CacheRoom room{away.store, state, sources, CacheSpace([] { return std::nullopt; })};
  UnitOutcomes outcomes{state, room, options};
  SameCopies same{{state, sources, bases, base, room, outcomes}};
  std::shared_ptr<Transfer> transfer =
      must(Transfer::make(away.version, 0, {}, plan_fetch(away.file.extents),
                          must(away.store.fetch_pack(away.bytes.size())), must(away.store.hold_version(away.version))));

  Comparing() {
    transfer->bases = std::make_shared<VersionBases>("m@2", "m@1", BasePairs{{id, {base.id, 1}}});
    transfer->expect_comparisons();
    state.table.add(transfer);
    state.queue.want_ahead(transfer, {0, kChunks});
  }
  static std::vector<std::byte> changed(const std::string& bytes) {
    std::vector<std::byte> out(as_bytes(bytes).begin(), as_bytes(bytes).end());
    out.back() ^= std::byte{1};
    return out;
  }
  FetchTask take() {
    const MutexLock lock(state.mutex);
    auto task = state.queue.take();
    REQUIRE(task);
    return *std::move(task);
  }
  // Fetches the first chunk, with the digests of all.
  void fetch_first() {
    FetchTask first = take();
    const auto runs = first.runs();
    FetchSources::Request request{transfer->manifest, runs, {}};
    const auto got = must(sources.read(request));
    same.compare(first);
    outcomes.set(first, got.read.digests, Transfer::Clock::now());
  }
};

}  // namespace

TEST_CASE("chunks that equal the base are known after the first chunk, and copied") {
  Comparing one;
  CHECK(one.transfer->comparison(1).is_due);
  one.fetch_first();
  CHECK(!one.transfer->comparison(1).is_due);
  CHECK(one.transfer->is_same(1));
  CHECK(one.transfer->is_same(2));
  CHECK(!one.transfer->is_same(3));
  FetchTask task = one.take();
  REQUIRE(task.same);
  const Range range = task.range();
  const auto digests = must(one.same.copy(task));
  REQUIRE(digests);
  one.outcomes.set(task, *digests, Transfer::Clock::now());
  std::vector<std::byte> read(range.length);
  REQUIRE(read_exact(one.transfer->pack->fd(), range.offset, read, "pack").ok());
  CHECK(std::ranges::equal(read, as_bytes(one.away.bytes).subspan(range.offset, range.length)));
  CHECK(one.bases.counts().all.same_bytes == range.length);
}

TEST_CASE("a damaged base is reported, and its chunks are left to the sources") {
  Comparing one;
  one.fetch_first();
  for (std::size_t chunk = 0; chunk < kChunks; ++chunk) one.base.bytes[chunk * kDigestChunk] ^= std::byte{1};
  FetchTask task = one.take();
  REQUIRE(task.same);
  CHECK(!must(one.same.copy(task)));
  CHECK(one.damaged == 1);
  for (std::size_t unit = 1; unit < kChunks; ++unit) {
    CHECK(!one.transfer->is_same(unit));
    CHECK(one.transfer->state(unit) == UnitState::queued);
  }
  CHECK(!one.take().same);
}

}  // namespace weft::testing
