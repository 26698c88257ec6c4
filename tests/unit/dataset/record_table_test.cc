#include "dataset/record_table.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <set>

#include "testing.h"

namespace weft::testing {
namespace {

using Bytes = std::vector<std::byte>;
using Names = std::vector<std::string>;

struct Given {
  const char* name;
  std::uint64_t offset;
  std::uint64_t length;
};

RecordTableMaker maker_of(const std::vector<Given>& records, std::uint64_t container = 10'000) {
  RecordTableMaker maker(container);
  for (const Given& one : records) must(maker.record({one.name, one.offset, one.length}));
  return maker;
}

Bytes made(RecordTableMaker maker, bool with_files = true) {
  Bytes bytes = must(maker.make(with_files));
  must(RecordTable::check(bytes));
  return bytes;
}

std::string text_of(const Bytes& bytes, Range range) {
  return std::string(as_text(std::span(bytes).subspan(range.offset, range.length)));
}

// The entries of a directory: "name=row" for a file, "name/" for a directory.
Names list(const RecordTable& table, std::string_view dir) {
  Names names;
  for (std::uint64_t from = 0;;) {
    const auto entry = table.entry_at(dir, from);
    if (!entry) return names;
    CHECK(entry->next > entry->first);
    const auto looked_up = table.lookup(dir, entry->name);
    REQUIRE(looked_up);
    CHECK(looked_up->first == entry->first);
    CHECK(looked_up->row == entry->row);
    names.push_back(std::string(entry->name) + (entry->row ? "=" + std::to_string(*entry->row) : "/"));
    from = entry->next;
  }
}

}  // namespace

TEST_CASE("a table has the rows by offset, and index.npy and keys.txt as they are shown") {
  const Bytes bytes = made(maker_of({{"b", 500, 10}, {"a%\n\xff", 100, 0}, {"c/d", 700, 9300}}), false);
  const RecordTable table = must(RecordTable::check(bytes));
  REQUIRE(table.size() == 3);
  CHECK(table.row(0) == Range{100, 0});
  CHECK(table.row(1) == Range{500, 10});
  CHECK(table.row(2) == Range{700, 9300});
  CHECK(text_of(bytes, table.keys_txt()) == "a%25%0A%FF\nb\nc/d\n");
  const std::string npy = text_of(bytes, table.index_npy());
  CHECK(npy.starts_with("\x93NUMPY"));
  CHECK(npy.find("[('offset', '<u8'), ('length', '<u8')]") != npy.npos);
  CHECK(npy.find("(3,)") != npy.npos);
  CHECK(npy.size() % 16 == 0);
  std::uint64_t numbers[6];
  std::memcpy(numbers, npy.data() + npy.size() - sizeof numbers, sizeof numbers);
  CHECK(std::vector(numbers, numbers + 6) == std::vector<std::uint64_t>{100, 0, 500, 10, 700, 9300});
  CHECK_FALSE(table.has_files());
  CHECK(list(table, "").empty());
}

TEST_CASE("a table of nothing") {
  const Bytes bytes = made(maker_of({}));
  const RecordTable table = must(RecordTable::check(bytes));
  CHECK(table.size() == 0);
  CHECK(list(table, "").empty());
  CHECK(table.shares().part(4, 3) == std::pair<std::uint64_t, std::uint64_t>{0, 0});
  CHECK(table.shares().order(1, 4, 0).size() == 0);
}

TEST_CASE("files are found by their paths, and directories list what is in them once") {
  const Bytes bytes = made(maker_of({{"d/x", 0, 1},
                                     {"d-", 10, 1},
                                     {"d.txt", 20, 1},
                                     {"d/e/y", 30, 1},
                                     {"a", 40, 1},
                                     {"d/e/z", 50, 1},
                                     {"d0", 60, 1}}));
  const RecordTable table = must(RecordTable::check(bytes));
  CHECK(list(table, "") == Names{"a=4", "d-=1", "d.txt=2", "d/", "d0=6"});
  CHECK(list(table, "d") == Names{"e/", "x=0"});
  CHECK(list(table, "d/e") == Names{"y=3", "z=5"});
  CHECK(list(table, "d/x").empty());
  CHECK(list(table, "nothing").empty());
  CHECK_FALSE(table.lookup("", "e"));
  CHECK_FALSE(table.lookup("d", "y"));
  CHECK_FALSE(table.lookup("", ""));
}

TEST_CASE("the last of equal names counts, and a link is another name") {
  RecordTableMaker maker = maker_of({{"a", 0, 1}, {"a", 10, 2}});
  must(maker.link("l", "m"));
  must(maker.link("m", "a"));
  must(maker.link("lost", "nothing"));
  must(maker.link("r1", "r2"));
  must(maker.link("r2", "r1"));
  const Bytes bytes = made(std::move(maker));
  const RecordTable table = must(RecordTable::check(bytes));
  CHECK(table.size() == 2);
  CHECK(list(table, "") == Names{"a=1", "l=1", "m=1"});
  CHECK(table.left_out() == 3);
  CHECK(text_of(bytes, table.skipped_txt()).find("lost\ta link to what is no record\n") != std::string::npos);
}

TEST_CASE("of a link and a member with one name the later one counts") {
  RecordTableMaker maker(10'000);
  must(maker.record({"x", 100, 10}));
  must(maker.link("a", "x"));
  must(maker.record({"a", 300, 20}));  // replaces the link
  must(maker.record({"b", 500, 30}));
  must(maker.link("b", "x"));  // replaces the member
  const Bytes bytes = made(std::move(maker));
  CHECK(list(must(RecordTable::check(bytes)), "") == Names{"a=1", "b=0", "x=0"});
}

TEST_CASE("more records, or longer names, than the container's bytes can have are refused") {
  RecordTableMaker rows(800);
  Status status;
  for (int i = 0; i < 5000 && status.ok(); ++i) status = rows.record({"k", 0, 0});
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().code == Errc::unsupported);
  RecordTableMaker names(1U << 20U);
  const std::string name(4000, 'n');
  status = {};
  for (int i = 0; i < 2000 && status.ok(); ++i) status = names.record({name, 0, 0});
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().code == Errc::unsupported);
}

TEST_CASE("a file in the place of a directory is left out") {
  RecordTableMaker maker = maker_of({{"a", 0, 1}, {"a-b", 5, 1}, {"a/b", 10, 1}, {"a/b/c", 20, 1}});
  must(maker.left_out("dev\n", "a device"));
  const Bytes bytes = made(std::move(maker));
  const RecordTable table = must(RecordTable::check(bytes));
  CHECK(list(table, "") == Names{"a-b=1", "a/"});
  CHECK(list(table, "a") == Names{"b/"});
  CHECK(table.size() == 4);
  CHECK(text_of(bytes, table.skipped_txt()) ==
        "dev%0A\ta device\na\ta directory has its name\na/b\ta directory has its name\n");
}

TEST_CASE("parts share out the rows by where they begin, each once") {
  RecordTableMaker maker(1'000'000);
  for (std::uint64_t i = 0; i < 997; ++i) must(maker.record({"r", i * 1000 + i % 7, 900}));
  const Bytes bytes = made(std::move(maker), false);
  const RecordTable table = must(RecordTable::check(bytes));
  for (const std::uint64_t parts : {1U, 2U, 7U, 8U, 4096U}) {
    std::uint64_t next = 0;
    for (std::uint64_t r = 0; r < parts; ++r) {
      const auto [begin, end] = table.shares().part(parts, r);
      CHECK(begin == next);
      for (std::uint64_t row = begin; row < end; ++row) {
        CHECK(table.row(row).offset * parts >= r * 1'000'000 / parts * parts);
        CHECK(table.row(row).offset * parts < (r + 1) * 1'000'000 + parts);
      }
      next = end;
    }
    CHECK(next == table.size());
  }
}

TEST_CASE("an order deals all rows out evenly, by the seed") {
  constexpr std::uint64_t kSegment = RowShares::kSegment;
  RecordTableMaker maker(kSegment * 100);
  for (std::uint64_t i = 0; i < 3000; ++i) must(maker.record({"r", i * (kSegment / 30), 10}));
  const Bytes bytes = made(std::move(maker), false);
  const RecordTable table = must(RecordTable::check(bytes));
  for (const std::uint64_t parts : {1U, 3U, 8U}) {
    std::set<std::uint64_t> seen;
    for (std::uint64_t r = 0; r < parts; ++r) {
      const RowOrder order = table.shares().order(42, parts, r);
      const auto rows = order.rows();
      CHECK(rows == table.shares().order(42, parts, r).rows());
      CHECK(rows != table.shares().order(43, parts, r).rows());
      for (std::uint64_t first = 0; first < rows.size(); first += 97) {
        std::vector<std::uint64_t> some(std::min<std::uint64_t>(600, rows.size() - first));
        order.read(first, some);
        CHECK(std::ranges::equal(some, std::span(rows).subspan(first, some.size())));
      }
      CHECK_FALSE(std::ranges::is_sorted(rows));
      CHECK(rows.size() >= 3000 / parts - 60);
      seen.insert(rows.begin(), rows.end());
      // The rows of one window of segments come before those of the next.
      std::set<std::uint64_t> window;
      for (std::size_t i = 0; i < std::min<std::size_t>(rows.size(), 400); ++i)
        window.insert(table.row(rows[i]).offset / kSegment);
      CHECK(window.size() <= RowShares::kWindow);
    }
    CHECK(seen.size() == 3000);
  }
  // The order is equal on all machines and in all releases.
  const auto rows = table.shares().order(7, 100, 3).rows();
  CHECK(rows.size() == 30);
  CHECK(std::vector(rows.begin(), rows.begin() + 3) == std::vector<std::uint64_t>{1288, 1265, 1277});
  const auto all = table.shares().order(42, 1, 0).rows();
  CHECK(std::vector{all[0], all[1000], all[2999]} == std::vector<std::uint64_t>{444, 1460, 2485});
  CHECK(table.shares().order(7, 101, 100).size() == 0);
}

TEST_CASE("a table with a changed byte is refused, or still keeps its promises") {
  RecordTableMaker maker = maker_of({{"d/x", 0, 1}, {"d-", 10, 1}, {"d/e/y", 30, 1}, {"a", 40, 1}, {"d0", 60, 1}});
  must(maker.link("l", "a"));
  must(maker.left_out("c", "a device"));
  const Bytes good = must(maker.make(true));
  const std::uint64_t seed = test_seed();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 20'000; ++round) {
    Bytes bytes = good;
    for (std::uint64_t changes = 1 + random() % 3; changes-- > 0;)
      bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    const auto table = RecordTable::check(bytes);
    if (!table.ok()) {
      CHECK(table.error().code == Errc::corrupt);
      continue;
    }
    for (std::uint64_t i = 0; i < table->size(); ++i) CHECK(table->row(i).offset <= table->container_bytes());
    list(*table, "");
    list(*table, "d");
  }
  for (std::size_t length = 0; length < good.size(); ++length)
    CHECK_FALSE(RecordTable::check(std::span(good).first(length)).ok());
}

}  // namespace weft::testing
