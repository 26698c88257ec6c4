#include <doctest/doctest.h>
#include <lmdb.h>

#include <algorithm>
#include <map>
#include <random>

#include "format/containers.h"
#include "testing.h"
#include "unit/format/scans.h"

using namespace weft;
using namespace weft::testing;

namespace {

using Values = std::map<std::string, std::string>;

void ok(int rc) {
  REQUIRE_MESSAGE(rc == 0, mdb_strerror(rc));
}

// A data.mdb written by LMDB itself, with `values` in the main database or in a named one.
class Written {
 public:
  explicit Written(const std::string& path) {
    ok(mdb_env_create(&env_));
    ok(mdb_env_set_mapsize(env_, 64U << 20U));
    ok(mdb_env_set_maxdbs(env_, 8));
    ok(mdb_env_open(env_, path.c_str(), MDB_NOSUBDIR | MDB_NOLOCK | MDB_NOSYNC, 0600));
  }
  ~Written() { mdb_env_close(env_); }
  Written(const Written&) = delete;
  Written& operator=(const Written&) = delete;

  void put(const Values& values, const char* name = nullptr, unsigned flags = 0) {
    MDB_txn* txn = nullptr;
    MDB_dbi dbi = 0;
    ok(mdb_txn_begin(env_, nullptr, 0, &txn));
    ok(mdb_dbi_open(txn, name, MDB_CREATE | flags, &dbi));
    for (const auto& [key, value] : values) {
      MDB_val k{key.size(), const_cast<char*>(key.data())}, v{value.size(), const_cast<char*>(value.data())};
      ok(mdb_put(txn, dbi, &k, &v, 0));
    }
    ok(mdb_txn_commit(txn));
  }

 private:
  MDB_env* env_ = nullptr;
};

// Returns `count` random values. Their sizes cycle through `sizes`.
Values many(std::size_t count, const std::vector<std::size_t>& sizes, std::uint64_t seed) {
  Values values;
  for (std::size_t i = 0; i < count; ++i) {
    const auto bytes = random_bytes(sizes[i % sizes.size()], seed + i);
    values[std::to_string(i * 7919 % 100'003)] = std::string(as_text(bytes));
  }
  return values;
}

std::string file_of(const Values& values) {
  TempDir dir;
  Written(dir / "data.mdb").put(values);
  return read_text(dir / "data.mdb");
}

void check_equal(const std::string& file, const Values& values) {
  KeptRecords found;
  const Status status = scan(lmdb_container(), file, 1U << 20U, found);
  if (!status.ok()) FAIL(status.error().message);
  REQUIRE(found.records.size() == values.size());
  for (const auto& one : found.records) {
    const auto value = values.find(one.name);
    REQUIRE(value != values.end());
    CHECK(file.substr(one.offset, one.length) == value->second);
  }
}

Error bad(const std::string& file) {
  KeptRecords found;
  const Status status = scan(lmdb_container(), file, 4096, found);
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().message.find('\n') == std::string::npos);
  return status.error();
}

void put32(std::string& file, std::size_t at, std::uint32_t value) {
  for (unsigned i = 0; i < 4; ++i) file[at + i] = static_cast<char>(value >> (8 * i));
}

}  // namespace

TEST_CASE("lmdb: every record of what LMDB writes") {
  check_equal(file_of({}), {});
  check_equal(file_of({{"key", "value"}, {"empty", ""}}), {{"key", "value"}, {"empty", ""}});
  for (const auto& values : {many(5000, {10, 100, 1000, 0}, 1), many(300, {2000, 4096, 30'000, 110'000}, 2)})
    check_equal(file_of(values), values);
}

TEST_CASE("lmdb: what was overwritten and removed is no record") {
  TempDir dir;
  Written file(dir / "data.mdb");
  Values values = many(1000, {50, 5000}, 3);
  file.put(values);
  for (auto& [key, value] : values) value += "again";
  file.put(values);
  values["one"] = "more";
  file.put({{"one", "more"}});
  check_equal(read_text(dir / "data.mdb"), values);
}

TEST_CASE("lmdb: keys of a named database have its name in front") {
  TempDir dir;
  Written file(dir / "data.mdb");
  file.put({{"a", "1"}, {"b", std::string(9000, 'b')}}, "images");
  file.put({{"a", "2"}}, "labels");
  check_equal(read_text(dir / "data.mdb"),
              {{"images/a", "1"}, {"images/b", std::string(9000, 'b')}, {"labels/a", "2"}});
}

TEST_CASE("lmdb: several values for a key are not known") {
  TempDir dir;
  Written file(dir / "data.mdb");
  file.put({{"a", "1"}}, "d", MDB_DUPSORT);
  const Error error = bad(read_text(dir / "data.mdb"));
  CHECK(error.code == Errc::unsupported);
  CHECK(error.message.find("MDB_DUPSORT") != std::string::npos);
}

TEST_CASE("lmdb: damaged and hostile files are refused") {
  const std::string file = file_of(many(2000, {100, 6000}, 4));
  constexpr std::size_t kPage = 4096, kMeta = 16;
  CHECK(bad("").message.find("meta pages") != std::string::npos);
  CHECK(bad(file.substr(0, kPage)).message.find("meta pages") != std::string::npos);
  std::string spoiled = file;
  put32(spoiled, kMeta, 7);
  CHECK(bad(spoiled).message.find("expected a meta page at 0") != std::string::npos);
  spoiled = file;
  put32(spoiled, kPage + kMeta, 7);
  CHECK(bad(spoiled).message.find("expected a meta page at 4096") != std::string::npos);
  spoiled = file;
  put32(spoiled, kMeta + 4, 999);
  CHECK(bad(spoiled).code == Errc::unsupported);
  for (const std::uint32_t size : {0U, 100U, 5000U, 1U << 20U}) {
    spoiled = file;
    put32(spoiled, kMeta + 24, size);
    CHECK(bad(spoiled).code == Errc::invalid);
  }
  CHECK(bad(file.substr(0, file.size() / 2)).message.find("got a file of") != std::string::npos);
}

// Damages the root of the main database in the newer meta page.
TEST_CASE("lmdb: a root that leads to itself, to a value, or outside is refused") {
  const std::string file = file_of(many(2000, {100, 6000}, 5));
  const auto txn = [&file](std::size_t page) {
    std::uint64_t value = 0;
    for (unsigned i = 8; i-- > 0;) value = value << 8U | static_cast<unsigned char>(file[page * 4096 + 16 + 128 + i]);
    return value;
  };
  const std::size_t root_at = (txn(1) > txn(0) ? 4096U : 0U) + 16 + 24 + 48 + 40;
  for (const std::uint32_t root : {0U, 1U, 1'000'000U, 0xfffffffeU}) {
    std::string spoiled = file;
    put32(spoiled, root_at, root);
    CHECK(bad(spoiled).code == Errc::invalid);
  }
}

TEST_CASE("lmdb: a file with changed bytes gives records within it, or is refused") {
  const std::string file = file_of(many(300, {20, 600, 5000}, 6));
  const std::uint64_t seed = test_seed();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 2000; ++round) {
    std::string spoiled = file;
    for (std::uint64_t changes = 1 + random() % 8; changes-- > 0;)
      spoiled[random() % spoiled.size()] = static_cast<char>(random());
    KeptRecords found;
    const Status status = scan(lmdb_container(), spoiled, 1U << 20U, found);
    if (!status.ok()) CHECK((status.error().code == Errc::invalid || status.error().code == Errc::unsupported));
    for (const auto& one : found.records) {
      CHECK(one.offset <= spoiled.size());
      CHECK(one.length <= spoiled.size() - one.offset);
    }
  }
}
