#include <doctest/doctest.h>

#include "archindex/class.h"
#include "archindex/marks.h"
#include "base/sha256.h"
#include "store_paths.h"
#include "testing.h"

using namespace weft;
using namespace weft::testing;

namespace {

struct Index {
  Index() {
    must(Env::create(safe(dir.path())));
    EnvOptions options;
    options.write = true;
    env = must(Env::open(safe(dir.path()), options));
    lock.emplace(must(env->lock_writer()));
  }

  TempDir dir;
  std::unique_ptr<Env> env;
  std::optional<WriterLock> lock;
};

ArchItem item(unsigned name, std::vector<std::uint32_t> inputs) {
  return {sha256(as_bytes(std::to_string(name))), std::move(inputs)};
}

// A class of pairs of layers. One layer of each pair feeds the next pair.
ArchClass deep(unsigned pairs) {
  std::vector<ArchItem> items = {item(0, {})};
  for (unsigned i = 0; i < pairs; ++i) {
    std::uint32_t before = i == 0 ? 0 : 2 * i - 1;
    items.push_back(item(2 * i + 1, {before}));
    items.push_back(item(2 * i + 2, {before}));
  }
  return class_of(items);
}

std::size_t parts_of(Txn& txn, Bytes key, std::size_t most) {
  std::size_t parts = 0;
  must(each_part(txn, key, [&](const ArchPart&) { return Result<bool>(++parts < most); }));
  return parts;
}

}  // namespace

TEST_CASE("a class is read as it was written, in parts that fit into a page twice, and goes without a trace") {
  constexpr std::size_t kNodeMax = 2038;  // LMDB's limit, including its own 8 bytes
  Index index;
  Txn txn = must(index.env->write(*index.lock));
  for (unsigned pairs : {0U, 1U, 40U, 44U, 45U, 300U}) {
    INFO("pairs ", pairs);
    ArchClass of = deep(pairs);
    std::string key = class_key(of);
    CHECK_FALSE(must(has_class(txn, key)));
    must(put_class(txn, key, of));
    CHECK(must(has_class(txn, key)));
    ArchClass read = must(need_class(txn, key));
    CHECK(read.ids == of.ids);
    CHECK(read.inputs == of.inputs);
    std::size_t rows = 0;
    must(each_entry(txn, Table::architectures, key, [&](const Entry& entry) -> Status {
      CHECK(8 + entry.key.size() + entry.value.size() <= kNodeMax);
      ++rows;
      return {};
    }));
    CHECK(parts_of(txn, key, SIZE_MAX) == rows);
    CHECK(parts_of(txn, key, 1) == 1);
    must(erase_class(txn, key));
    CHECK(must(txn.count(Table::architectures)) == 0);
  }
}

TEST_CASE("a class that is missing, or lacks a part, is reported as damage") {
  Index index;
  Txn txn = must(index.env->write(*index.lock));
  ArchClass of = deep(300);
  std::string key = class_key(of);
  CHECK(need_class(txn, key).error().code == Errc::corrupt);
  must(put_class(txn, key, of));
  std::vector<std::string> parts;
  must(each_entry(txn, Table::architectures, key, [&](const Entry& entry) -> Status {
    parts.emplace_back(entry.key);
    return {};
  }));
  REQUIRE(parts.size() > 2);
  for (const std::string& part : parts) {
    must(txn.erase(Table::architectures, part));
    CHECK(need_class(txn, key).error().code == Errc::corrupt);
    must(put_class(txn, key, of));
  }
}

TEST_CASE("marks are those of items beside one, neither upstream nor downstream nor far") {
  //  0 - 1 - 4 - 6 - 7 - 8 ... 16
  //    - 2 - 5 -
  //    - 3
  std::vector<ArchItem> items = {item(0, {}),  item(1, {0}), item(2, {0}),   item(3, {0}),
                                 item(4, {1}), item(5, {2}), item(6, {4, 5})};
  for (unsigned i = 7; i < 17; ++i) items.push_back(item(i, {i - 1}));
  ArchClass of = class_of(items);
  std::vector<std::uint32_t> levels = levels_of(of);
  auto marks = [&](std::initializer_list<std::size_t> beside) {
    std::uint64_t all = 0;
    for (std::size_t i : beside) all |= mark_of(of.id(i));
    return all;
  };
  CHECK(marks_beside(of, levels, 0) == 0);
  CHECK(marks_beside(of, levels, 3) == marks({1, 2, 4, 5, 6, 7, 8, 9, 10, 11}));
  CHECK(marks_beside(of, levels, 4) == marks({2, 3, 5}));
  CHECK(marks_beside(of, levels, 6) == marks({3}));
  CHECK(marks_beside(of, levels, 11) == marks({3}));
  CHECK(marks_beside(of, levels, 12) == 0);
}

TEST_CASE("all marks are set if very many items are near") {
  std::vector<ArchItem> items = {item(0, {})};
  for (unsigned i = 1; i < 1100; ++i) items.push_back(item(i, {0}));
  ArchClass of = class_of(items);
  CHECK(marks_beside(of, levels_of(of), 5) == ~0ULL);
}
