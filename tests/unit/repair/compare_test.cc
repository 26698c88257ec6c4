// The comparison of an index with a rebuilt one. Both are filled by hand.
#include "repair/compare.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "index/blobs.h"
#include "index/tables.h"
#include "unit/index/test_index.h"

using namespace weft;
using namespace weft::testing;

namespace {

using Lines = std::vector<std::string>;

struct TwoIndexes {
  TwoIndexes() {
    std::filesystem::create_directory(dir / "packs");
    for (const TestIndex* index : {&have, &want}) index->change([](Txn& txn) { return put_counters(txn, Counters{}); });
  }
  Lines compare(const std::function<Status()>& follow = [] { return Status(); }) const {
    const PackDir packs(safe(dir / "packs"));
    FsckReport report;
    const auto lock = [this] { return have.env->lock_writer(); };
    const auto has_content = [this] { return content; };
    must(compare_indexes({*have.env, *want.env, packs, follow, lock, has_content, no_progress()}, report));
    return report.problems;
  }

  TempDir dir;
  TestIndex have, want;
  bool content = true;  // `want` has the content of all versions
};

std::string line(std::string_view what) {
  return fmt::format("index: {}; run `weft fsck --rebuild`", what);
}

std::function<Status(Txn&)> putting(Table table, std::string key, std::string value) {
  return [=](Txn& txn) { return txn.put(table, key, value); };
}

}  // namespace

TEST_CASE("equal indexes have no differences") {
  const TwoIndexes indexes;
  for (const TestIndex* index : {&indexes.have, &indexes.want}) {
    index->change(putting(Table::models, "m", "value"));
    index->change(putting(Table::owned, "o", "value"));
  }
  CHECK(indexes.compare() == Lines{});
}

TEST_CASE("a row that only one index has, or that differs, is reported") {
  const TwoIndexes indexes;
  indexes.have.change(putting(Table::models, "b", "value"));
  indexes.want.change(putting(Table::models, "c", "value"));
  indexes.have.change(putting(Table::models, "d", "value"));
  indexes.want.change(putting(Table::models, "d", "another"));
  CHECK(indexes.compare() == Lines{line("table models: row b should not be there"),
                                   line("table models: row c is missing"), line("table models: row d differs")});
}

TEST_CASE("a row that the rebuilt index gets from the journal meanwhile is no difference") {
  const TwoIndexes indexes;
  indexes.have.change(putting(Table::models, "m", "value"));
  const auto follow = [&]() -> Status {
    indexes.want.change(putting(Table::models, "m", "value"));
    return {};
  };
  CHECK(indexes.compare(follow) == Lines{});
}

TEST_CASE("rows that follow from content are compared only if the rebuilt index has all content") {
  TwoIndexes indexes;
  indexes.have.change(putting(Table::owned, "o", "value"));
  CHECK(indexes.compare() == Lines{line("table owned: row o should not be there")});
  indexes.content = false;
  CHECK(indexes.compare() == Lines{});
}

TEST_CASE("a saved version lacks its note in the index, and no other note may be missing") {
  const TwoIndexes indexes;
  indexes.want.change([](Txn& txn) -> Status {
    WEFT_CHECK(put_note(txn, kUnsaved, 10));
    return put_note(txn, kPinned, 11);
  });
  indexes.have.change([](Txn& txn) { return put_note(txn, kUnsaved, 12); });
  CHECK(indexes.compare() == Lines{line(fmt::format("table meta: note {} of b is missing", kPinned)),
                                   line(fmt::format("table meta: note {} of c should not be there", kUnsaved))});
}

TEST_CASE("a count of blobs in a pack that lists none is reported") {
  const TwoIndexes indexes;
  indexes.have.change([](Txn& txn) { return count_in_pack(txn, 7, 1); });
  CHECK(indexes.compare() == Lines{line("table packs: row 0000000000000007 differs")});
}

TEST_CASE("counters may be above the rebuilt ones, and not below") {
  const TwoIndexes indexes;
  const auto set = [](const TestIndex& index, std::uint64_t version, std::uint64_t model) {
    Counters counters;
    counters.next_version = version;
    counters.next_model = model;
    index.change([&](Txn& txn) { return put_counters(txn, counters); });
  };
  set(indexes.have, 5, 5);
  set(indexes.want, 4, 6);
  CHECK(indexes.compare() == Lines{line("counter next_model: expected at least 6, got 5")});
}

TEST_CASE("of many wrong rows of a table the first few are reported") {
  const TwoIndexes indexes;
  indexes.have.change([](Txn& txn) -> Status {
    for (int i = 0; i < 3000; ++i) WEFT_CHECK(txn.put(Table::models, fmt::format("m{:04}", i), "value"));
    return {};
  });
  const Lines lines = indexes.compare();
  CHECK(lines.size() == 10);
  CHECK(lines.front() == line("table models: row m0000 should not be there"));
}

TEST_CASE("the number of a held blob must agree, and that of a dead blob need not") {
  const TwoIndexes indexes;
  const ContentId dead{100, {}};
  const ContentId held{200, {}};
  std::uint64_t number = 1;
  for (const TestIndex* index : {&indexes.have, &indexes.want}) {
    index->change([&](Txn& txn) -> Status {
      for (const ContentId& id : {dead, held}) {
        WEFT_TRY(FoundBlob blob, make_blob(txn, id, {}));
        WEFT_CHECK(number_blob(txn, blob, number++));
      }
      return txn.put(Table::dead, blob_key(dead), "");
    });
  }
  CHECK(indexes.compare() == Lines{line(fmt::format("table blobs: row {:016x}{:064} differs", held.length, 0))});
}
