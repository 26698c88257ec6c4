#include "daemon_api/cold_wire.h"

#include <doctest/doctest.h>
#include <fcntl.h>

#include "fakes/blob_store.h"
#include "testing.h"

namespace weft::testing {
namespace {

JsonValue parsed(const std::string& text) {
  auto value = JsonValue::parse(text);
  REQUIRE(value.ok());
  return std::move(value).value();
}

Errc refused(const std::string& text, std::size_t descriptors, Range range = {0, 10}) {
  std::vector<Fd> fds;
  for (std::size_t i = 0; i < descriptors; ++i) fds.push_back(open_file("/dev/null", O_RDONLY).value());
  const auto got = decode_cold_pieces(parsed(text), std::move(fds), range);
  REQUIRE(!got.ok());
  return got.error().code;
}

}  // namespace

TEST_CASE("a ColdRange survives encoding") {
  ColdRange what{7, 3, {1ULL << 40U, 99}, 1U << 20U};
  what.one_tensor = true;
  const auto got = decode_fields<ColdRange>(parsed(encode_fields(what)));
  REQUIRE(got.ok());
  CHECK(got->version == 7);
  CHECK(got->file == 3);
  CHECK(got->range == what.range);
  CHECK(got->ahead == what.ahead);
  CHECK(got->all == what.all);
  CHECK(got->one_tensor);
  CHECK(!decode_fields<ColdRange>(parsed(R"({"version":1,"file":4294967296,"offset":0,"length":1})")).ok());
  CHECK(!decode_fields<ColdRange>(parsed(R"({"version":1,"file":0,"offset":0})")).ok());
}

TEST_CASE("advice travels as it is, and an unknown policy is refused") {
  for (const ColdPolicy policy : {ColdPolicy::automatic, ColdPolicy::stream, ColdPolicy::fetch}) {
    const auto got = decode_fields<ColdAdvice>(parsed(encode_fields(ColdAdvice{policy, 123, 456})));
    REQUIRE(got.ok());
    CHECK(got->policy == policy);
    CHECK(got->bytes_per_s == 123);
    CHECK(got->keeps == 456);
  }
  CHECK_FALSE(decode_fields<ColdAdvice>(parsed(R"({"policy":"ice","bytes_per_s":1,"keeps":1})")).ok());
  CHECK_FALSE(decode_fields<ColdAdvice>(parsed(R"({"policy":"auto"})")).ok());
}

TEST_CASE("whole files are waited for where that is quick") {
  constexpr std::uint64_t kMega = 1U << 20U;
  CHECK(fetch_pays(8 * kMega, 0));
  CHECK_FALSE(fetch_pays(9 * kMega, 0));
  CHECK(fetch_pays(20 * kMega, 1000 * kMega));
  CHECK_FALSE(fetch_pays(100 * kMega, 1000 * kMega));
  CHECK(fetch_pays(100'000 * kMega, 4096 * kMega));
  CHECK(fetch_pays(kMega, 1000));
  CHECK_FALSE(fetch_pays(8 * kMega, 10 * kMega));
}

TEST_CASE("pieces travel with the descriptors of their packs") {
  BlobStore store;
  const PackId pack = store.add_pack("0123456789abcdef");
  const ContentId a = store.add_blob(1, pack, 2, 4);
  const ContentId b = store.add_blob(2, pack, 8, 4);
  const OpenPlace first = store.open_blob(a).value();
  const std::vector<Run> pieces{{100, 4, first}, {104, 4, {first.pack, store.open_blob(b)->offset}}};
  auto answer = encode_cold_pieces(pieces);
  REQUIRE(answer.ok());
  CHECK(answer->fds.size() == 1);
  const auto got = decode_cold_pieces(parsed(answer->body), std::move(answer->fds), {101, 6});
  REQUIRE_MESSAGE(got.ok(), (got.ok() ? "" : got.error().message));
  REQUIRE(got->size() == 2);
  CHECK((*got)[1].offset == 104);
  CHECK((*got)[1].place.offset == 8);
  std::string bytes(4, ' ');
  REQUIRE(read_exact((*got)[1].place.pack->fd(), 8, std::as_writable_bytes(std::span(bytes)), "pack").ok());
  CHECK(bytes == "89ab");
}

TEST_CASE("pieces that no daemon would name are refused") {
  CHECK(refused(R"({"pieces":[[0,10,0,0]],"packs":[[1,100]]})", 0) == Errc::invalid);
  CHECK(refused(R"({"pieces":[[0,10,0,1]],"packs":[[1,100]]})", 1) == Errc::invalid);
  CHECK(refused(R"({"pieces":[[0,10,91,0]],"packs":[[1,100]]})", 1) == Errc::invalid);
  CHECK(refused(R"({"pieces":[[5,10,0,0]],"packs":[[1,100]]})", 1) == Errc::invalid);
  CHECK(refused(R"({"pieces":[[0,0,0,0]],"packs":[[1,100]]})", 1) == Errc::invalid);
  CHECK(refused(R"({"pieces":[[0,5,0,0],[6,5,6,0]],"packs":[[1,100]]})", 1) == Errc::invalid);
  CHECK(refused(R"({"pieces":[],"packs":[[1,100]]})", 1) == Errc::invalid);
  CHECK(refused(R"({"pieces":[[0,10,"x",0]],"packs":[[1,100]]})", 1) == Errc::invalid);
  CHECK(refused(R"({"pieces":[[0,10,0,0]],"packs":[[1]]})", 1) == Errc::invalid);
  CHECK(refused(R"({"packs":[[1,100]]})", 1) == Errc::invalid);
}

}  // namespace weft::testing
