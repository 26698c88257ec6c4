#include <flatbuffers/flatbuffers.h>

#include "base/sha256.h"
#include "diskformat/pack_names.h"
#include "pack_fixture.h"
#include "packs/toc_cache.h"

using namespace weft;
using namespace weft::testing;

namespace {

PackToc sample() {
  PackToc toc{7, 3U << 20U, {}};
  Bytes a = random_bytes(5000, 1);
  Bytes b = random_bytes((1U << 20U) + 1, 2);
  toc.entries.push_back({{a.size(), tree_sha256(a)}, 0, {sha256(a)}, 0});
  toc.entries.push_back(
      {{b.size(), tree_sha256(b)}, 8192, {sha256(std::span(b).first(1U << 20U)), sha256(std::span(b).last(1))}, 77});
  return toc;
}

bool same(const PackToc& a, const PackToc& b) {
  if (a.pack != b.pack || a.size != b.size || a.entries.size() != b.entries.size()) return false;
  for (std::size_t i = 0; i < a.entries.size(); ++i) {
    const PackEntry &x = a.entries[i], &y = b.entries[i];
    if (x.id != y.id || x.offset != y.offset || x.chunks != y.chunks || x.hint != y.hint) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("a .toc survives encoding") {
  PackToc toc = sample();
  CHECK(same(must(decode_toc(encode_toc(toc), "x.toc")), toc));
}

TEST_CASE("a .toc that is longer than the piece that is written at once comes back from the lines of a writer") {
  TempDir dir;
  const SafePath path = safe(dir.path()) / "x.toc";
  PackToc toc{9, 0, {}};
  TocLines lines;
  for (std::uint64_t i = 0; i < 5000; ++i) {
    const PackEntry entry{{i % 7 == 0 ? kDigestChunk + 1 : i + 1, {}}, toc.size, {}, i};
    toc.size += entry.id.length;
    toc.entries.push_back(entry);
    for (unsigned b = 0; b < 2; ++b) toc.entries.back().id.root.bytes[b] = static_cast<std::uint8_t>(i >> (8 * b));
    for (std::uint64_t chunk = 0; chunk < chunk_count(entry.id.length); ++chunk)
      toc.entries.back().chunks.push_back(sha256(as_bytes(std::to_string(i + chunk))));
  }
  for (auto entry = toc.entries.rbegin(); entry != toc.entries.rend(); ++entry) lines.add(*entry);
  const PackEntry taken = lines.take(toc.entries[7].id);
  CHECK(taken.chunks == toc.entries[7].chunks);
  CHECK(taken.offset == toc.entries[7].offset);
  lines.add(taken);
  lines.sort();
  REQUIRE(lines.size() == toc.entries.size());
  must(begin_toc(path, PackToc{9, toc.size, {}}, lines));
  CHECK(same(must(read_toc(path)), toc));
  CHECK(must(read_file(path, 1U << 30U)) == encode_toc(toc));
  CHECK(salvage_toc(encode_toc(toc), 9).size() == toc.entries.size());
}

TEST_CASE("a .toc without entries comes back") {
  PackToc toc{3, 0, {}};
  toc.boot = "a boot";
  const PackToc back = must(decode_toc(encode_toc(toc), "x.toc"));
  CHECK(back.boot == toc.boot);
  CHECK(back.entries.empty());
}

TEST_CASE("every flipped byte and every truncation of a .toc is seen") {
  const Bytes good = encode_toc(sample());
  for (std::size_t i = 0; i < good.size(); ++i) {
    Bytes bad = good;
    bad[i] ^= std::byte{1};
    CHECK_FALSE(decode_toc(bad, "x.toc").ok());
    CHECK_FALSE(decode_toc(std::span(good).first(i), "x.toc").ok());
  }
}

TEST_CASE("a .toc with a true checksum and wrong content is refused") {
  PackToc toc = sample();
  SUBCASE("overlap") {
    toc.entries[1].offset = 4000;
  }
  SUBCASE("past the end") {
    toc.size = 10000;
  }
  SUBCASE("offset near 2^64") {
    toc.entries[1].offset = UINT64_MAX - 5;
  }
  SUBCASE("length near 2^64") {
    toc.entries[1].id.length = UINT64_MAX - 8191;
  }
  SUBCASE("empty blob") {
    toc.entries[0].id.length = 0;
  }
  SUBCASE("fewer digests than chunks") {
    toc.entries[1].chunks.pop_back();
  }
  SUBCASE("no digests") {
    for (PackEntry& entry : toc.entries) entry.chunks.clear();
  }
  SUBCASE("more digests than chunks") {
    toc.entries[1].chunks.emplace_back();
  }
  CHECK(code_of(decode_toc(encode_toc(toc), "x.toc")) == Errc::corrupt);
}

TEST_CASE("chunk digests come from the .toc, also when the pack has grown, and of listed places alone") {
  PackStore store;
  const Bytes bytes = random_bytes(3 * kDigestChunk + 5, 1);
  const ContentId id = store.publish({bytes}).at(0);
  std::vector<Digest> digests(4);
  sha256_chunks(bytes, digests);
  CHECK(must(store.packs->chunks(id)) == digests);
  const BlobPlace place = *must(must(store.index.read())->find(id));
  CHECK(code_of(store.packs->chunks(id, {place.pack, place.offset + 1})) == Errc::not_found);
  CHECK(code_of(store.packs->chunks({id.length, Digest{}}, place)) == Errc::not_found);

  PackToc toc = must(store.packs->toc(place.pack));
  const ContentId more{5, tree_sha256(std::span(bytes).first(5))};
  toc.entries.push_back({more, toc.size, {sha256(std::span(bytes).first(5))}, 0});
  toc.size += 5;
  must(replace_toc(store.packs->toc_file(place.pack), toc));
  CHECK(must(store.packs->chunks(more, {place.pack, toc.size - 5})) == toc.entries.back().chunks);
  CHECK(must(store.packs->listing(place.pack))->has(more, toc.size - 5));
  CHECK(must(store.packs->chunks(id)) == digests);
}

TEST_CASE("names of packs") {
  CHECK(pack_name(0xabc) == "0000000000000abc");
  CHECK(pack_of_name("0000000000000abc.pack", ".pack") == 0xabc);
  CHECK_FALSE(pack_of_name("0000000000000ABC.pack", ".pack"));
  CHECK_FALSE(pack_of_name("0000000000000abc.toc", ".pack"));
  CHECK_FALSE(pack_of_name("-000000000000abc.pack", ".pack"));
  CHECK_FALSE(pack_of_name("abc.pack", ".pack"));
}
