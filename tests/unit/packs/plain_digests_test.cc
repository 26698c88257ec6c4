#include "packs/plain_digests.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/sha256.h"
#include "pack_fixture.h"
#include "packs/import.h"

using namespace weft;
using namespace weft::testing;

namespace {

constexpr std::size_t kKiB = 1024;
constexpr std::size_t kMiB = 1024 * kKiB;

std::shared_ptr<PlainSums> sums_of(std::vector<std::uint64_t> sizes) {
  return std::make_shared<PlainSums>(PlainSums{std::move(sizes)});
}

// Returns the digests of consecutive parts of `bytes`.
std::vector<Digest> expected(std::span<const std::byte> bytes, const std::vector<std::uint64_t>& sizes) {
  std::vector<Digest> digests;
  for (const std::uint64_t size : sizes) {
    digests.push_back(sha256(bytes.first(size)));
    bytes = bytes.subspan(size);
  }
  return digests;
}

std::uint64_t sum_of(const std::vector<std::uint64_t>& sizes) {
  std::uint64_t sum = 0;
  for (const std::uint64_t size : sizes) sum += size;
  return sum;
}

// Feeds the bytes in steps of at most `step` bytes.
std::vector<Digest> fed(ThreadPool& pool, std::span<const std::byte> bytes, std::vector<std::uint64_t> sizes,
                        std::size_t step) {
  const auto sums = sums_of(std::move(sizes));
  JobGroup user(pool);
  PlainDigest digest(pool, sums);
  for (; !bytes.empty(); bytes = bytes.subspan(std::min(step, bytes.size())))
    digest.feed(bytes.first(std::min(step, bytes.size())), user);
  must(user.wait());
  digest.wait();
  return sums->digests;
}

// Returns parts of random bytes.
std::vector<Bytes> parts_of(const std::vector<std::uint64_t>& lengths) {
  std::vector<Bytes> parts;
  for (const std::uint64_t length : lengths) parts.push_back(random_bytes(length, length + parts.size()));
  return parts;
}

void damage(const std::string& path, std::uint64_t offset) {
  const Fd file = must(open_file(path, O_RDWR));
  std::byte one{};
  must(read_exact(file.get(), offset, std::span(&one, 1), path));
  one ^= std::byte{1};
  must(write_exact(file.get(), offset, std::span(&one, 1), path));
}

}  // namespace

TEST_CASE("files are hashed in the order of their bytes, whatever the steps") {
  ThreadPool pool(3);
  const std::vector<std::vector<std::uint64_t>> layouts{{},
                                                        {0},
                                                        {0, 0, 0},
                                                        {5},
                                                        {3 * kMiB + 7},
                                                        {0, 1, 0, 64, 63, 65, 0},
                                                        {kMiB, kMiB, 1, kMiB - 1, 0, 2 * kMiB},
                                                        std::vector<std::uint64_t>(5000, 1)};
  for (const auto& sizes : layouts)
    for (const std::size_t step : {std::size_t{1000}, 64 * kKiB, 100 * kKiB + 1, kMiB, 16 * kMiB}) {
      const Bytes bytes = random_bytes(sum_of(sizes), sizes.size());
      CAPTURE(sizes.size());
      CAPTURE(step);
      CHECK(fed(pool, bytes, sizes, step) == expected(bytes, sizes));
    }
}

TEST_CASE("many small files of random sizes") {
  const std::uint64_t seed = test_seed();
  INFO("WEFT_TEST_SEED=", seed);
  std::mt19937_64 random(seed);
  ThreadPool pool(2);
  for (int round = 0; round < 20; ++round) {
    std::vector<std::uint64_t> sizes;
    for (int i = 0; i < 500; ++i) sizes.push_back(random() % 5 == 0 ? 0 : random() % 20'000);
    const Bytes bytes = random_bytes(sum_of(sizes), random());
    CHECK(fed(pool, bytes, sizes, 1 + random() % kMiB) == expected(bytes, sizes));
  }
}

TEST_CASE("bytes after the last file are ignored, and a file without all its bytes has no digest") {
  ThreadPool pool(1);
  const Bytes bytes = random_bytes(200 * kKiB, 1);
  CHECK(fed(pool, bytes, {10, 20}, 7) == expected(bytes, {10, 20}));
  CHECK(fed(pool, std::span(bytes).first(15), {10, 20}, 7) ==
        std::vector<Digest>{sha256(std::span(bytes).first(10)), Digest{}});
}

TEST_CASE("several sources are hashed at once, and finish() waits for all") {
  ThreadPool pool(4);
  JobGroup user(pool);
  PlainDigests digests(pool);
  std::vector<Bytes> contents;
  std::vector<std::shared_ptr<PlainSums>> sums;
  for (std::uint64_t i = 0; i < 20; ++i) {
    contents.push_back(random_bytes(i * 300 * kKiB, i));
    sums.push_back(sums_of({contents.back().size()}));
    PlainDigest* const digest = digests.begin(sums.back());
    for (std::size_t at = 0; at < contents.back().size(); at += 100 * kKiB)
      digest->feed(std::span(contents.back()).subspan(at, std::min(100 * kKiB, contents.back().size() - at)), user);
  }
  CHECK(digests.begin(nullptr) == nullptr);
  digests.finish();
  for (std::size_t i = 0; i < sums.size(); ++i) CHECK(sums[i]->digests == std::vector<Digest>{sha256(contents[i])});
  must(user.wait());
}

TEST_CASE("an import takes the plain SHA-256 of each file from its windows") {
  PackStore store;
  const std::vector<std::vector<std::uint64_t>> layouts{
      {10}, {3001, 700 * kKiB, 17, 5 * kMiB + 5, kMiB}, {9 * kMiB + 1}, std::vector<std::uint64_t>(3000, 100)};
  for (int round = 0; round < 2; ++round) {  // the second one compares with stored bytes
    const auto import = store.begin();
    std::vector<std::shared_ptr<PlainSums>> sums;
    std::vector<ContentId> ids;
    for (const auto& lengths : layouts) {
      const std::vector<Bytes> parts = parts_of(lengths);
      const Fd file = store.source(join(parts));
      sums.push_back(sums_of({sum_of(lengths)}));
      const ByteUses uses{{}, sums.back()};
      const auto extents = must(import->add(file.get(), "file", ranges_of(parts), no_progress(), Take::copy, uses));
      std::ranges::copy(ids_of(extents), std::back_inserter(ids));
    }
    import->finish_sums();
    for (std::size_t i = 0; i < sums.size(); ++i)
      CHECK(sums[i]->digests == std::vector<Digest>{sha256(join(parts_of(layouts[i])))});
    store.commit(*import, "", ids);
  }
}

TEST_CASE("an import hashes files that consist of stored and new content, and none that it lacks or that is damaged") {
  PackStore store;
  const Bytes a = random_bytes(3 * kMiB + 1, 1), b = random_bytes(500, 2), c = random_bytes(2 * kMiB, 3);
  const std::vector<Bytes> parts{a, b};
  const std::vector<ContentId> known = store.publish(parts);
  const auto import = store.begin();
  const std::vector<ContentId> fresh = must(store.add(*import, {c}));
  const auto extents = [](const std::vector<ContentId>& ids) {
    std::vector<Extent> out;
    std::uint64_t at = 0;
    for (const ContentId& id : ids) {
      out.push_back({at, id});
      at += id.length;
    }
    return out;
  };
  const auto mixed = extents({known[1], fresh[0], known[0], known[1]});
  const auto none = extents({});
  const auto absent = extents({known[1], {7, Digest{{1}}}});
  const std::vector<std::span<const Extent>> files{mixed, none, absent};
  const auto sums = must(import->sums_of(files, no_progress()));
  REQUIRE(sums.size() == 3);
  CHECK(sums[0] == sha256(join({b, c, a, b})));
  CHECK(sums[1] == sha256({}));
  CHECK_FALSE(sums[2]);
  damage(pack_path(store.path, must(store.packs->list())[0]), 2 * kMiB);
  CHECK_FALSE(must(import->sums_of(std::span(files).first(1), no_progress()))[0]);
}
