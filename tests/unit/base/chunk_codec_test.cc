#include "base/chunk_codec.h"

#include <doctest/doctest.h>

#include <cstring>
#include <random>

#include "base/sha256.h"
#include "testing.h"

namespace weft {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::size_t kHead = 4;

// Adds 1 to, or subtracts 1 from, about `per_mille` of 1,000 elements.
Bytes changed(Bytes bytes, std::size_t width, unsigned per_mille, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (std::size_t at = 0; at + width <= bytes.size(); at += width) {
    if (random() % 1000 >= per_mille) continue;
    std::uint64_t element = 0;
    std::memcpy(&element, &bytes[at], width);
    element += random() % 2 == 0 ? 1 : ~std::uint64_t{0};
    std::memcpy(&bytes[at], &element, width);
  }
  return bytes;
}

std::uint32_t size_at(const Bytes& coded, std::size_t at) {
  std::uint32_t size = 0;
  std::memcpy(&size, &coded[kHead + at * 4], 4);
  return size;
}

Bytes with_size(Bytes coded, std::size_t at, std::uint32_t size) {
  std::memcpy(&coded[kHead + at * 4], &size, 4);
  return coded;
}

// Returns a coded sparse chunk of width 1 with these raw streams.
Bytes sparse_chunk(const Bytes& gaps, const Bytes& values) {
  Bytes coded(kHead + 16);
  coded[0] = coded[1] = std::byte{1};
  coded[2] = std::byte{2};
  for (const std::size_t at : {0U, 2U}) coded = with_size(coded, at, static_cast<std::uint32_t>(gaps.size()));
  for (const std::size_t at : {1U, 3U}) coded = with_size(coded, at, static_cast<std::uint32_t>(values.size()));
  coded.insert(coded.end(), gaps.begin(), gaps.end());
  coded.insert(coded.end(), values.begin(), values.end());
  return coded;
}

void check_round_trip(ChunkCoder& coder, const Bytes& base, const Bytes& now, std::size_t width, CodingEffort effort) {
  const auto coded = coder.encode(base, now, width, effort);
  if (!coded) return;
  CHECK(coded->size() < now.size());
  Bytes out = base;
  const auto decoded = coder.decode(*coded, width, out);
  REQUIRE(decoded.ok());
  CHECK(out == now);
  std::uint64_t differ = 0;
  for (std::size_t at = 0; at < now.size(); at += width) differ += std::memcmp(&now[at], &base[at], width) != 0 ? 1 : 0;
  CHECK(decoded->changed == differ);
  CHECK(decoded->elements == now.size() / width);
}

}  // namespace

TEST_CASE("A coded chunk decodes to the chunk, for every width, length and share of changes") {
  const std::uint64_t seed = testing::test_seed();
  INFO("seed ", seed);
  ChunkCoder coder;
  for (const std::size_t width : {1U, 2U, 4U, 8U})
    for (const std::size_t elements : {1U, 7U, 63U, 64U, 65U, 1000U, 50'000U, 131'072U})
      for (const unsigned per_mille : {0U, 1U, 10U, 160U, 480U, 520U, 1000U}) {
        CAPTURE(width);
        CAPTURE(elements);
        CAPTURE(per_mille);
        const Bytes base = testing::random_bytes(elements * width, seed + elements);
        const Bytes now = changed(base, width, per_mille, seed);
        check_round_trip(coder, base, now, width, CodingEffort::sparse);
        check_round_trip(coder, base, now, width, CodingEffort::dense);
      }
}

TEST_CASE("Random runs of changes, also far apart and at both ends, decode to what they were") {
  const std::uint64_t seed = testing::test_seed();
  INFO("seed ", seed);
  std::mt19937_64 random(seed);
  ChunkCoder coder;
  for (int round = 0; round < 300; ++round) {
    const std::size_t width = std::size_t{1} << (random() % 4);
    const std::size_t elements = 1 + random() % 20'000;
    const Bytes base = testing::random_bytes(elements * width, random());
    Bytes now = base;
    for (std::size_t at = random() % 700; at < now.size(); at += 1 + random() % (random() % 3 == 0 ? 4 : 2000))
      now[at] = static_cast<std::byte>(random());
    if (random() % 2 == 0) now.back() ^= std::byte{1};
    check_round_trip(coder, base, now, width, CodingEffort::dense);
  }
}

TEST_CASE("A sparse change takes about half of the changed bytes, an equal chunk four bytes") {
  ChunkCoder coder;
  const Bytes base = testing::random_bytes(kDigestChunk, 1);
  CHECK(coder.encode(base, base, 2, CodingEffort::sparse)->size() == kHead);
  const auto coded = coder.encode(base, changed(base, 2, 10, 2), 2, CodingEffort::sparse);
  REQUIRE(coded);
  CHECK(coded->size() < kDigestChunk / 100);
}

TEST_CASE("Content of another kind is given plain") {
  ChunkCoder coder;
  const Bytes base = testing::random_bytes(kDigestChunk, 1);
  const Bytes other = testing::random_bytes(kDigestChunk, 2);
  CHECK(!coder.encode(base, other, 2, CodingEffort::sparse));
  CHECK(!coder.encode(base, other, 2, CodingEffort::dense));
  CHECK(!coder.encode(base, base, 2, CodingEffort::none));
  CHECK(!coder.encode(base, base, 3, CodingEffort::dense));
  CHECK(!coder.encode(std::span(base).first(100), std::span(base).first(101), 1, CodingEffort::dense));
  CHECK(!coder.encode(std::span(base).first(101), std::span(base).first(101), 2, CodingEffort::dense));
  const Bytes large(kDigestChunk + 8);
  CHECK(!coder.encode(large, large, 8, CodingEffort::dense));
  CHECK(changed_share(base, other, 2) > 0.99);
  CHECK(changed_share(base, base, 2) == 0);
}

TEST_CASE("A coded chunk with a wrong field is refused") {
  ChunkCoder coder;
  const Bytes base = testing::random_bytes(10'000, 1);
  const Bytes good = *coder.encode(base, changed(base, 2, 50, 2), 2, CodingEffort::sparse);
  Bytes out = base;
  REQUIRE(coder.decode(good, 2, out).ok());
  const auto refuses = [&](const Bytes& coded, std::size_t width) {
    const auto decoded = coder.decode(coded, width, out);
    return !decoded.ok() && decoded.error().code == Errc::corrupt;
  };
  const auto with_byte = [&](std::size_t at, unsigned value) {
    Bytes bad = good;
    bad[at] = static_cast<std::byte>(value);
    return bad;
  };
  for (const unsigned codec : {0U, 2U, 3U, 255U}) CHECK(refuses(with_byte(0, codec), 2));
  for (const unsigned width : {0U, 1U, 3U, 4U, 8U, 16U}) CHECK(refuses(with_byte(1, width), 2));
  for (const unsigned count : {0U, 1U, 2U, 4U, 9U, 255U}) CHECK(refuses(with_byte(2, count), 2));
  CHECK(refuses(with_byte(3, 1), 2));
  for (const std::size_t width : {0U, 1U, 3U, 4U, 5U, 8U, 16U}) CHECK(refuses(good, width));
  for (std::size_t size = 0; size < good.size(); size += size < 64 ? 1 : 17) {
    CAPTURE(size);
    CHECK(refuses(Bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)), 2));
  }
  Bytes longer = good;
  longer.push_back(std::byte{0});
  CHECK(refuses(longer, 2));
  for (std::size_t at = 0; at < 6; ++at)
    for (const std::uint32_t size : {0U, size_at(good, at) - 1, size_at(good, at) + 1, 20'000U, 0xffffffffU}) {
      CAPTURE(at);
      CAPTURE(size);
      CHECK(refuses(with_size(good, at, size), 2));
    }
  CHECK(refuses({}, 2));
  CHECK(!coder.decode(good, 2, std::span(out).first(5'000)).ok());
}

TEST_CASE("A gap past the end, and values that do not match the gaps, are refused") {
  ChunkCoder coder;
  const Bytes base = testing::random_bytes(1000, 1);
  Bytes out;
  const auto decodes = [&](const Bytes& gaps, const Bytes& values) {
    out = base;
    return coder.decode(sparse_chunk(gaps, values), 1, out).ok();
  };
  const auto b = [](unsigned value) { return static_cast<std::byte>(value); };
  CHECK(decodes({b(255), b(255), b(255), b(234)}, {b(2)}));  // the gap leads to element 999, the last
  CHECK(out.back() == static_cast<std::byte>(static_cast<unsigned>(base.back()) + 1));
  CHECK(!decodes({b(255), b(255), b(255), b(235)}, {b(2)}));
  CHECK(!decodes({b(255), b(255), b(255), b(255), b(0)}, {b(2)}));
  CHECK(!decodes({b(0)}, {}));
  CHECK(!decodes({}, {b(2)}));
  CHECK(!decodes({b(0), b(0)}, {b(2)}));
  CHECK(!decodes({b(0)}, {b(2), b(2)}));
  CHECK(!decodes(Bytes(1005, b(0)), {b(2)}));
}

TEST_CASE("A stream that grows beyond its chunk is refused before it is decompressed") {
  ChunkCoder coder;
  const Bytes zeros(kDigestChunk);
  const Bytes ones(kDigestChunk, std::byte{1});
  // Byte planes of one value compress 1 MiB into a few bytes. The same frame for a shorter chunk is a decompression
  // bomb.
  const Bytes bomb = *coder.encode(zeros, ones, 1, CodingEffort::dense);
  CHECK(bomb.size() < 200);
  Bytes small(4096);
  CHECK(!coder.decode(bomb, 1, small).ok());
  CHECK(!coder.decode(with_size(bomb, 0, 4096), 1, small).ok());
}

// WEFT_CODEC_CHUNKS: how many chunks are damaged.
TEST_CASE("Damaged coded chunks never read or write out of bounds, and what decodes wrong has another SHA-256") {
  const std::uint64_t seed = testing::test_seed();
  INFO("seed ", seed);
  const char* count = std::getenv("WEFT_CODEC_CHUNKS");
  const std::uint64_t chunks = count == nullptr ? 20'000 : std::strtoull(count, nullptr, 10);
  std::mt19937_64 random(seed);
  ChunkCoder coder;
  std::uint64_t decoded = 0;
  for (std::uint64_t done = 0; done < chunks;) {
    const std::size_t width = std::size_t{1} << (random() % 4);
    const std::size_t elements = 32 + random() % 400;
    const Bytes base = testing::random_bytes(elements * width, random());
    const Bytes now = changed(base, width, random() % 2 == 0 ? 30 : 900, random());
    const auto coded = coder.encode(base, now, width, CodingEffort::dense);
    if (!coded) continue;
    const Digest right = sha256(now);
    for (int damage = 0; damage < 50; ++damage, ++done) {
      Bytes bad = *coded;
      for (std::uint64_t flips = 1 + random() % 3; flips > 0; --flips)
        bad[random() % 2 == 0 ? random() % bad.size() : random() % std::min<std::size_t>(bad.size(), 40)] =
            static_cast<std::byte>(random());
      if (random() % 8 == 0) bad.resize(random() % (bad.size() + 1));
      // A buffer of exactly this size: a sanitizer notices any byte beyond it.
      const auto out = std::make_unique<std::byte[]>(now.size());
      const std::span<std::byte> bytes(out.get(), now.size());
      std::ranges::copy(base, bytes.begin());
      if (!coder.decode(bad, width, bytes).ok()) continue;
      ++decoded;
      const bool equal = std::equal(now.begin(), now.end(), bytes.begin());
      REQUIRE((sha256(bytes) == right) == equal);
    }
  }
  MESSAGE(decoded, " of ", chunks, " damaged chunks decoded");
}

}  // namespace weft
