#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "archindex/list.h"
#include "archindex/marks.h"
#include "store_paths.h"
#include "testing.h"

using namespace weft;
using namespace weft::testing;

namespace {

const std::string kItem(20, 'i');

// An index in which kItem has `count` places. Its neighbours in the table are items with one place each.
struct Places {
  explicit Places(std::uint64_t count) {
    must(Env::create(safe(dir.path())));
    EnvOptions options;
    options.write = true;
    env = must(Env::open(safe(dir.path()), options));
    lock.emplace(must(env->lock_writer()));
    txn.emplace(must(env->write(*lock)));
    put(std::string(20, 'h'), {{1, 1}, 0});
    put(std::string(20, 'j'), {{1, 1}, 0});
    for (std::uint64_t i = 0; i < count; ++i) all.push_back({{i / 3, i}, i * i});
    std::vector<ItemPlace> shuffled = all;
    std::ranges::shuffle(shuffled, random);
    for (const ItemPlace& place : shuffled) put(kItem, place);
  }
  void put(const std::string& key, const ItemPlace& place) {
    must(txn->put(Table::arch_items, key, encode_item_place(key, place)));
  }
  std::string values(std::size_t from) const {
    std::string text;
    for (std::size_t i = from; i < all.size(); ++i) text += encode_item_place(kItem, all[i]);
    return text;
  }

  TempDir dir;
  std::mt19937_64 random{7};
  std::unique_ptr<Env> env;
  std::optional<WriterLock> lock;
  std::optional<Txn> txn;
  std::vector<ItemPlace> all;
};

}  // namespace

TEST_CASE("places come in order, however many at a time, and those of no other item") {
  for (std::uint64_t count : {0U, 1U, 2U, 70U, 144U, 145U, 146U, 3000U}) {
    INFO("count ", count);
    Places places(count);
    for (std::size_t at_once : {1U, 7U, 64U, 100'000U}) {
      ItemPlaces reader = must(ItemPlaces::open(*places.txn, kItem));
      std::string read;
      for (Bytes rows = must(reader.next(at_once)); !rows.empty(); rows = must(reader.next(at_once))) {
        CHECK(rows.size() <= at_once * kItemPlaceRowBytes);
        read += rows;
      }
      CHECK(read == places.values(0));
      CHECK(must(reader.next(at_once)).empty());
    }
  }
}

TEST_CASE("the rest of a page begins at the cursor, and the walk continues after it") {
  Places places(1000);
  for (std::size_t from : {0U, 1U, 100U, 144U, 145U, 500U, 998U, 999U}) {
    INFO("from ", from);
    Cursor cursor = must(places.txn->cursor(Table::arch_items));
    auto entry = must(cursor.seek_value(kItem, least_place(places.all[from].place)));
    std::string read;
    for (; entry; entry = must(cursor.next_of_key())) {
      const Bytes rest = must(cursor.rest_of_page());
      CHECK(rest.starts_with(entry->value));
      read += rest;
    }
    CHECK(read == places.values(from));
  }
}

TEST_CASE("a place whose checksum is wrong is damage") {
  Places places(500);
  std::string wrong = encode_item_place(kItem, places.all[300]);
  must(places.txn->erase_value(Table::arch_items, kItem, wrong));
  wrong[20] = static_cast<char>(wrong[20] ^ 1);
  must(places.txn->put(Table::arch_items, kItem, wrong));
  ItemPlaces reader = must(ItemPlaces::open(*places.txn, kItem));
  Result<Bytes> rows = reader.next(100'000);
  while (rows.ok() && !rows->empty()) rows = reader.next(100'000);
  REQUIRE_FALSE(rows.ok());
  CHECK(rows.error().code == Errc::corrupt);
  CHECK(must(has_item_place(*places.txn, kItem, places.all[299].place)));
  CHECK(has_item_place(*places.txn, kItem, places.all[300].place).error().code == Errc::corrupt);
}

TEST_CASE("rows are sorted by how much they may share; queries tell marks from items") {
  Places places(0);
  const std::string other(20, 'o');
  const std::string third(20, 't');
  // All three classes have every mark. `other` is in the second and third class, `third` in the third one.
  for (VersionId version : {1U, 2U, 3U}) places.put(kItem, {{0, version}, ~0ULL});
  for (VersionId version : {2U, 3U}) places.put(other, {{0, version}, ~0ULL});
  places.put(third, {{0, 3}, ~0ULL});
  ArchList list(kItem, "", 3,
                {{kItem, 3, 0, 1, false}, {other, 2, mark_of(other), 2, true}, {third, 2, mark_of(third), 4, true}});
  std::vector<ArchList::Head> heads;
  CHECK(must(list.read(*places.txn, heads)) == 3);
  CHECK_FALSE(list.next());
  REQUIRE(heads.size() == 1);
  CHECK(heads[0].bound == 3);
  for (VersionId version : {1U, 2U, 3U}) {
    std::optional<ArchList::Head> next;
    ListedRow row = list.take_first(3, next);
    CHECK(row.rank.place.version == version);
    CHECK(next.has_value() == (version < 3));
    CHECK(must(list.ask(*places.txn, row)) == std::optional<std::uint64_t>(version == 3 ? 3 : 2));
    CHECK(must(list.ask(*places.txn, row)) == std::optional<std::uint64_t>(version));
    CHECK_FALSE(must(list.ask(*places.txn, row)));
  }
}
