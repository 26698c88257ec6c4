#include <doctest/doctest.h>
#include <fcntl.h>

#include <algorithm>
#include <atomic>

#include "base/json.h"
#include "base/sha256.h"
#include "base/text.h"
#include "base/thread_pool.h"
#include "os/sys.h"
#include "testing.h"
#include "weft/dtype.h"

using namespace weft;
using namespace weft::testing;

TEST_CASE("a batch of SHA-256 equals the single digests") {
  std::vector<std::vector<std::byte>> messages;
  for (std::size_t length = 0; length < 300; ++length) messages.push_back(random_bytes(length, length));
  for (std::size_t length : {100'000, 7, 65'536, 65'537, 1'048'576, 1'048'575, 64})
    messages.push_back(random_bytes(length, length));
  std::vector<std::span<const std::byte>> views(messages.begin(), messages.end());
  auto check = [](std::span<const std::span<const std::byte>> some) {
    std::vector<Digest> digests(some.size());
    sha256_each(some, digests);
    for (std::size_t i = 0; i < some.size(); ++i) CHECK(digests[i] == sha256(some[i]));
  };
  for (std::size_t skip : {0, 1, 2}) check(std::span(views).subspan(skip));  // odd and even counts, other pairings
  for (std::size_t count = 1; count < 40; ++count) check(std::span(views).last(count));
}

TEST_CASE("SHA-256 of many chunks of one size, and of a few beside many") {
  auto bytes = random_bytes(17 * kDigestChunk + 5, 4);
  for (std::size_t count : {1, 8, 9, 16, 17, 18}) {
    auto some = std::span(bytes).first(std::min(bytes.size(), count * kDigestChunk));
    std::vector<Digest> digests(count);
    sha256_chunks(some, digests);
    for (std::size_t i = 0; i < count; ++i) {
      auto chunk = some.subspan(i * kDigestChunk);
      CHECK(digests[i] == sha256(chunk.first(std::min(kDigestChunk, chunk.size()))));
    }
  }
}

TEST_CASE("sha256 of a known text") {
  CHECK(to_hex(sha256(as_bytes("abc"))) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST_CASE("the tree root covers length and chunk order") {
  auto bytes = random_bytes(kDigestChunk * 2 + 7, 1);
  std::vector<Digest> chunks = {sha256(std::span(bytes).subspan(0, kDigestChunk)),
                                sha256(std::span(bytes).subspan(kDigestChunk, kDigestChunk)),
                                sha256(std::span(bytes).subspan(2 * kDigestChunk))};
  CHECK(tree_sha256(bytes) == tree_root(bytes.size(), chunks));
  CHECK(tree_root(bytes.size() + 1, chunks) != tree_root(bytes.size(), chunks));
  std::swap(chunks[0], chunks[1]);
  CHECK(tree_sha256(bytes) != tree_root(bytes.size(), chunks));
  CHECK(chunk_count(0) == 1);
  CHECK(chunk_count(kDigestChunk) == 1);
  CHECK(chunk_count(kDigestChunk + 1) == 2);
}

TEST_CASE("digests round-trip through hex") {
  Digest digest = sha256(as_bytes("x"));
  CHECK(digest_from_hex(to_hex(digest)) == digest);
  CHECK_FALSE(digest_from_hex("12"));
  CHECK_FALSE(digest_from_hex(std::string(64, 'g')));
}

TEST_CASE("utf-8 is checked as RFC 3629 says") {
  CHECK(valid_utf8("größe"));
  CHECK_FALSE(valid_utf8("\xc0\xaf"));
  CHECK_FALSE(valid_utf8("\xed\xa0\x80"));
  CHECK_FALSE(valid_utf8("\xf4\x90\x80\x80"));
  CHECK_FALSE(valid_utf8("a\xe2\x82"));
}

TEST_CASE("numbers parse without sign or wrap") {
  CHECK(parse_u64("18446744073709551615") == UINT64_MAX);
  CHECK_FALSE(parse_u64("18446744073709551616"));
  CHECK_FALSE(parse_u64("-1"));
  CHECK_FALSE(parse_u64(""));
  CHECK(parse_bytes("4096") == 4096U);
  CHECK(parse_bytes("3K") == 3072U);
  CHECK(parse_bytes("20G") == std::uint64_t{20} << 30U);
  CHECK(parse_bytes("16383P").has_value());
  for (const char* bad : {"", "K", "-1", "1.5G", "20GB", "16384P", "18446744073709551616"})
    CHECK_FALSE(parse_bytes(bad));
}

TEST_CASE("tensor sizes cannot wrap") {
  Shape huge = {1ULL << 33U, 1ULL << 33U};
  CHECK_FALSE(element_count(huge));
  CHECK_FALSE(tensor_bytes(DType::f32, huge).ok());
  Shape nearly = {1ULL << 62U};
  CHECK_FALSE(tensor_bytes(DType::f64, nearly).ok());
  Shape blocks = {4, 64};
  CHECK(tensor_bytes(DType::q4_0, blocks).value() == 4 * 2 * 18);
  Shape ragged = {33};
  CHECK_FALSE(tensor_bytes(DType::q4_0, ragged).ok());
  Shape empty = {1ULL << 33U, 0, 1ULL << 33U};
  CHECK(tensor_bytes(DType::f32, empty).value() == 0);
}

namespace {
struct Recorder final : JsonHandler {
  std::string seen;
  Status add(std::string_view text) { return seen += text, Status{}; }
  Status begin_object() override { return add("{"); }
  Status end_object() override { return add("}"); }
  Status begin_array() override { return add("["); }
  Status end_array() override { return add("]"); }
  Status key(std::string_view name) override { return add(std::string(name) + ":"); }
  Status text(std::string_view value) override { return add("'" + std::string(value) + "'"); }
  Status number(std::uint64_t value) override { return add(std::to_string(value) + ";"); }
  Status negative(std::int64_t value) override { return add(std::to_string(value) + ";"); }
  Status real(double) override { return add("r;"); }
  Status boolean(bool value) override { return add(value ? "t;" : "f;"); }
  Status null() override { return add("n;"); }
};
}  // namespace

TEST_CASE("json: the reader bounds depth and sees duplicates") {
  Recorder recorder;
  CHECK(parse_json(R"({"a":1,"a":[-2,1.5,true,null,"x\u00e9"]})", 8, recorder).ok());
  CHECK(recorder.seen == "{a:1;a:[-2;r;t;n;'xé']}");
  Recorder deep;
  CHECK_FALSE(parse_json(std::string(1'000'000, '['), 128, deep).ok());
  CHECK(deep.seen.size() == 128);
  for (const char* bad : {"", "{", "{}x", "{\"a\":1e999}", "{\"\xff\":1}", "[1,]"}) {
    Recorder r;
    CHECK_FALSE(parse_json(bad, 8, r).ok());
  }
}

TEST_CASE("json: the writer escapes") {
  JsonWriter json;
  json.begin_object().member("a\"b", "\n\x01\xff").key("l").begin_array().value(1).value(true).end_array().end_object();
  CHECK(json.text() == "{\"a\\\"b\":\"\\n\\u0001\xef\xbf\xbd\",\"l\":[1,true]}");
}

TEST_CASE("locks exclude and end with the descriptor") {
  TempDir dir;
  write_file(dir / "f", "x");
  Fd a = open_file(dir / "f", O_RDONLY).value();
  Fd b = open_file(dir / "f", O_RDWR).value();
  CHECK(lock_fd(a.get(), LockKind::shared, LockWait::no, "a").ok());
  CHECK(lock_fd(b.get(), LockKind::exclusive, LockWait::no, "b").error().code == Errc::busy);
  a.reset();
  CHECK(lock_fd(b.get(), LockKind::exclusive, LockWait::no, "b").ok());
}

TEST_CASE("parallel_for visits each index once") {
  ThreadPool pool(3);
  std::vector<std::atomic<int>> seen(1000);
  pool.parallel_for(seen.size(), [&](std::size_t i) { ++seen[i]; });
  CHECK(std::all_of(seen.begin(), seen.end(), [](const auto& n) { return n == 1; }));
}

TEST_CASE("rename_new does not replace, remove_tree removes") {
  TempDir dir;
  write_file(dir / "a/b/c", "1");
  write_file(dir / "d", "2");
  CHECK(rename_new(dir / "d", dir / "a/b/c").error().code == Errc::exists);
  CHECK(remove_tree(dir / "a").ok());
  CHECK_FALSE(stat_file(dir / "a").ok());
  CHECK(remove_tree(dir / "nothing").ok());
}
