// The guarantees of weft/bytes/source.h for every source. Also tests that unverified bytes of a source are never used.
#include <doctest/doctest.h>

#include <functional>

#include "base/sha256.h"
#include "fetch/verified_source.h"
#include "source_worlds.h"
#include "testing.h"

namespace weft::conformance {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kLarge = 3 * kDigestChunk + 12345;

// A version of four blobs, one of several chunks.
struct Published {
  SourceWorld& world;
  std::vector<std::byte> manifest = testing::random_bytes(1000, 1);
  Digest digest = sha256(manifest);
  Blob small = make_blob(100, 2);
  Blob large = make_blob(kLarge, 3);
  Blob middle = make_blob(70'000, 4);
  Blob chunk = make_blob(kDigestChunk, 5);

  explicit Published(SourceWorld& of) : world(of) { world.put(manifest, {small, large, middle, chunk}); }
};

void in_each_world(const std::function<void(Published&)>& test) {
  for (const auto& world : source_worlds()) {
    CAPTURE(world->name());
    Published published(*world);
    test(published);
  }
}

ChunkRun all_of(const Blob& blob) {
  return {blob.id, 0, chunk_count(blob.id.length)};
}

std::vector<std::byte> part(const Blob& blob, const ChunkRun& run) {
  const auto begin = blob.bytes.begin() + static_cast<std::ptrdiff_t>(run.offset());
  return {begin, begin + static_cast<std::ptrdiff_t>(run.length())};
}

template <class T>
Errc code_of(const Result<T>& result) {
  REQUIRE(!result.ok());
  return result.error().code;
}

bool same(const VerifiedBytes& got, const std::vector<std::byte>& expected) {
  return std::ranges::equal(got.bytes.bytes(), expected);
}

bool same(const SourceBytes& got, const std::vector<std::byte>& expected) {
  return std::ranges::equal(got.bytes(), expected);
}

}  // namespace

TEST_CASE("a source returns a manifest, and Errc::not_found for one that it lacks") {
  in_each_world([](Published& it) {
    const auto source = it.world.source();
    CHECK(source->manifest(it.digest, deadline_in(10s)).value() == it.manifest);
    CHECK(code_of(source->manifest(sha256({}), deadline_in(10s))) == Errc::not_found);
  });
}

TEST_CASE("a source gives chunk digests that make the root") {
  in_each_world([](Published& it) {
    const auto source = it.world.source();
    for (const Blob* blob : {&it.small, &it.large, &it.middle, &it.chunk}) {
      const auto chunks = source->chunks(it.digest, blob->id, deadline_in(10s));
      REQUIRE(chunks.ok());
      CHECK(tree_root(blob->id.length, *chunks) == blob->id.root);
    }
    CHECK(code_of(source->chunks(it.digest, make_blob(100, 77).id, deadline_in(10s))) == Errc::not_found);
  });
}

TEST_CASE("a source gives any runs of chunks, in any order, of several blobs") {
  in_each_world([](Published& it) {
    const auto source = it.world.source();
    const std::vector<ChunkRun> runs{
        {it.large.id, 2, 2}, all_of(it.small), all_of(it.middle), {it.large.id, 0, 1}, all_of(it.chunk)};
    const Blob* blobs[] = {&it.large, &it.small, &it.middle, &it.large, &it.chunk};
    std::vector<std::byte> expected;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const auto bytes = part(*blobs[i], runs[i]);
      CHECK(same(source->read(it.digest, std::span(&runs[i], 1), deadline_in(10s)).value(), bytes));
      expected.insert(expected.end(), bytes.begin(), bytes.end());
    }
    CHECK(same(source->read(it.digest, runs, deadline_in(10s)).value(), expected));
    const ChunkRun unknown = all_of(make_blob(100, 77));
    CHECK(code_of(source->read(it.digest, std::span(&unknown, 1), deadline_in(10s))) == Errc::not_found);
  });
}

TEST_CASE("verified bytes are the bytes") {
  in_each_world([](Published& it) {
    VerifiedSource source(it.world.source());
    CHECK(source.manifest(it.digest, deadline_in(10s)).value() == it.manifest);
    const std::vector<ChunkRun> runs{{it.large.id, 1, 3}, all_of(it.small)};
    auto expected = part(it.large, runs[0]);
    expected.insert(expected.end(), it.small.bytes.begin(), it.small.bytes.end());
    CHECK(same(source.read(it.digest, runs, deadline_in(10s)).value(), expected));
  });
}

TEST_CASE("a manifest of other bytes is refused") {
  in_each_world([](Published& it) {
    it.world.spoil_manifest(it.digest);
    CHECK(code_of(VerifiedSource(it.world.source()).manifest(it.digest, deadline_in(10s))) == Errc::corrupt);
  });
}

TEST_CASE("wrong, short, oversized and forged bytes are never taken, of blobs of one chunk and of several") {
  for (const Damage what : {Damage::wrong_byte, Damage::short_bytes, Damage::oversized, Damage::forged_digests}) {
    CAPTURE(static_cast<int>(what));
    in_each_world([what](Published& it) {
      for (const Blob* blob : {&it.large, &it.chunk}) {
        if (!it.world.damage(*blob, what)) continue;
        VerifiedSource source(it.world.source());
        const ChunkRun last{blob->id, chunk_count(blob->id.length) - 1, 1};
        CHECK(code_of(source.read(it.digest, std::span(&last, 1), deadline_in(10s))) == Errc::corrupt);
        const std::vector<ChunkRun> runs{all_of(it.small), all_of(*blob)};
        CHECK(code_of(source.read(it.digest, runs, deadline_in(10s))) == Errc::corrupt);
      }
    });
  }
}

TEST_CASE("chunks beside a damaged one are still given") {
  in_each_world([](Published& it) {
    REQUIRE(it.world.damage(it.large, Damage::wrong_byte));
    VerifiedSource source(it.world.source());
    const ChunkRun first{it.large.id, 0, 3};
    CHECK(same(source.read(it.digest, std::span(&first, 1), deadline_in(10s)).value(), part(it.large, first)));
  });
}

TEST_CASE("a read of bytes that the source has lost fails with Errc::not_found") {
  in_each_world([](Published& it) {
    REQUIRE(it.world.damage(it.large, Damage::lost));
    const ChunkRun run = all_of(it.large);
    CHECK(code_of(it.world.source()->read(it.digest, std::span(&run, 1), deadline_in(10s))) == Errc::not_found);
  });
}

TEST_CASE("a hanging source costs the given deadline and does not block other reads") {
  in_each_world([](Published& it) {
    it.world.hang(it.large);
    const auto source = it.world.source();
    const ChunkRun stuck = all_of(it.large);
    CHECK(code_of(source->read(it.digest, std::span(&stuck, 1), deadline_in(50ms))) == Errc::timed_out);
    const ChunkRun other = all_of(it.small);
    CHECK(same(source->read(it.digest, std::span(&other, 1), deadline_in(10s)).value(), it.small.bytes));
    it.world.let_go();
  });
}

TEST_CASE("a read from a vanished source fails") {
  in_each_world([](Published& it) {
    it.world.vanish();
    const auto source = it.world.source();
    const auto got = source->manifest(it.digest, deadline_in(10s));
    REQUIRE(!got.ok());
    CHECK((got.error().code == Errc::unreachable || got.error().code == Errc::not_found));
  });
}

TEST_CASE("runs outside their blob are refused without a request") {
  in_each_world([](Published& it) {
    VerifiedSource source(it.world.source());
    for (const ChunkRun& run : {ChunkRun{it.large.id, 4, 1}, ChunkRun{it.large.id, 3, 2}, ChunkRun{it.large.id, 0, 0},
                                ChunkRun{it.large.id, 1, UINT64_MAX}})
      CHECK(code_of(source.read(it.digest, std::span(&run, 1), deadline_in(10s))) == Errc::internal);
  });
}

}  // namespace weft::conformance
