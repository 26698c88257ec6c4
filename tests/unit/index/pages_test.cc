// Walks of tables that are larger than one transaction reads.
#include "index/pages.h"

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "index/tables.h"
#include "test_index.h"

using namespace weft;
using namespace weft::testing;

namespace {

constexpr std::size_t kRows = limits::kRowsPerSnapshot;
constexpr std::size_t kMany = 2 * kRows + 10;

std::string key_at(std::size_t i) {
  return fmt::format("k{:06}", i);
}

struct FullIndex : TestIndex {
  FullIndex() {
    change([](Txn& txn) -> Status {
      for (std::size_t i = 0; i < kMany; ++i) WEFT_CHECK(txn.put(Table::meta, key_at(i), "value"));
      WEFT_CHECK(txn.put(Table::meta, "a", "before"));
      return txn.put(Table::meta, "z", "behind");
    });
  }
};

}  // namespace

TEST_CASE("a page has the entries of a prefix, and says where the next begins") {
  const FullIndex index;
  std::vector<std::string> keys;
  std::vector<std::size_t> sizes;
  std::string from;
  do {
    Txn txn = must(index.env->read());
    const std::size_t before = keys.size();
    from = must(visit_page(txn, Table::meta, "k", from, [&](const Entry& entry) -> Status {
      keys.emplace_back(entry.key);
      return {};
    }));
    sizes.push_back(keys.size() - before);
  } while (!from.empty());
  CHECK(sizes == std::vector<std::size_t>{kRows, kRows, 10});
  REQUIRE(keys.size() == kMany);
  for (std::size_t i = 0; i < kMany; ++i) CHECK(keys[i] == key_at(i));
}

TEST_CASE("a table that ends with a page has no page more") {
  const FullIndex index;
  index.change([](Txn& txn) -> Status {
    for (std::size_t i = kRows; i < kMany; ++i) WEFT_CHECK(txn.erase(Table::meta, key_at(i)));
    return {};
  });
  Txn txn = must(index.env->read());
  std::size_t count = 0;
  const auto next = must(visit_page(txn, Table::meta, "k", "", [&](const Entry&) -> Status {
    ++count;
    return {};
  }));
  CHECK(count == kRows);
  CHECK(next.empty());
}

TEST_CASE("a walk visits each lasting row once, also if its last row is deleted") {
  const FullIndex index;
  std::map<std::string, int> visits;
  std::size_t seen = 0;
  must(visit_all(*index.env, Table::meta, "k", [&](Txn&, const Entry& entry) -> Status {
    ++visits[std::string(entry.key)];
    if (++seen != kRows) return {};
    index.change([](Txn& txn) -> Status {  // erases the last key of the page and the next one, and adds new keys
      WEFT_CHECK(txn.erase(Table::meta, key_at(kRows - 1)));
      WEFT_CHECK(txn.erase(Table::meta, key_at(kRows)));
      WEFT_CHECK(txn.put(Table::meta, key_at(10) + "new", "value"));
      return txn.put(Table::meta, key_at(kRows + 10) + "new", "value");
    });
    return {};
  }));
  for (std::size_t i = 0; i < kMany; ++i) {
    const int expected = i == kRows ? 0 : 1;
    CHECK(visits[key_at(i)] == expected);
  }
  CHECK(visits[key_at(10) + "new"] == 0);
  CHECK(visits[key_at(kRows + 10) + "new"] == 1);
}

TEST_CASE("a renewed transaction shows one state for a page of rows, and a later one then") {
  const FullIndex index;
  RenewedTxn renewed(*index.env);
  const IndexState first = must(renewed.get(kRows - 1))->state();
  index.change([](Txn& txn) { return txn.put(Table::meta, "b", "value"); });
  CHECK(must(renewed.get())->state() == first);
  const IndexState second = must(renewed.get())->state();
  CHECK_FALSE(second == first);
  renewed.end();
  for (int i = 0; i < 4; ++i) index.change([](Txn& txn) { return txn.put(Table::meta, "b", "value"); });
}
