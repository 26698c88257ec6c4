// The two files of the journal: what they hold, and how each repairs the other.
#include "catalog/journal.h"

#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <variant>
#include <vector>

#include "test_journal.h"
#include "weft/bytes/run_list.h"

using namespace weft;
using namespace weft::testing;

namespace {

// A journal of three records, which set one tag to 1, 2 and 3.
struct ThreeRecords : TestJournal {
  ThreeRecords() {
    for (std::uint64_t number = 1; number <= 3; ++number) records.push_back(append(tag_event(number)));
  }
  std::vector<std::uint64_t> numbers() const { return numbers_in(must(journal.read(0))); }
  static std::vector<std::uint64_t> numbers_in(const JournalTail& tail) {
    std::vector<std::uint64_t> numbers;
    for (const JournaledEvent& each : tail.events)
      numbers.push_back(std::get<TagsEvent>(each.event).changes.at(0).number);
    return numbers;
  }

  std::vector<Range> records;
};

using Numbers = std::vector<std::uint64_t>;

}  // namespace

TEST_CASE("a new journal has no records, and the counters of an empty index") {
  const TestJournal made;
  CHECK(must(made.journal.size()) == 0);
  CHECK(must(made.journal.read(0)).events.empty());
  CHECK(must(made.journal.mark()).value().journal_end == 0);
}

TEST_CASE("records come back with their offsets, from any record on and up to any") {
  const ThreeRecords made;
  const JournalTail all = must(made.journal.read(0));
  CHECK(made.numbers_in(all) == Numbers{1, 2, 3});
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(all.events[i].begin == made.records[i].offset);
    CHECK(all.events[i].end == end_of(made.records[i]));
  }
  CHECK(all.end == made.counters.journal_end);
  CHECK(all.size == all.end);
  CHECK(made.numbers_in(must(made.journal.read(made.records[1].offset))) == Numbers{2, 3});
  CHECK(made.numbers_in(must(made.journal.read(0, made.records[2].offset))) == Numbers{1, 2});
}

TEST_CASE("a record that is damaged in one file is read from the other, and mended") {
  const ThreeRecords made;
  const std::string log = read_text(made.log()), copy = read_text(made.copy());
  for (const bool in_log : {true, false})
    for (const Range& record : made.records) {
      CAPTURE(in_log);
      CAPTURE(record.offset);
      in_log ? made.flip_log(record) : made.flip_copy(record);
      const JournalTail damaged = must(made.journal.read(0));
      CHECK(made.numbers_in(damaged) == Numbers{1, 2, 3});
      CHECK(damaged.gaps.empty());
      REQUIRE(damaged.damage.size() == 1);
      CHECK(damaged.damage[0].find(in_log ? ".log: " : ".copy: ") != std::string::npos);
      must(made.journal.mend(made.counters.journal_end, made.counters));
      CHECK(must(made.journal.read(0)).damage.empty());
      CHECK(read_text(made.log()) == log);
      CHECK(read_text(made.copy()).substr(kMarksBytes) == copy.substr(kMarksBytes));
    }
}

TEST_CASE("a record that is damaged in both files is a gap, and a damaged last record is missing") {
  const ThreeRecords made;
  made.flip_log(made.records[1]);
  made.flip_copy(made.records[1]);
  const JournalTail gap = must(made.journal.read(0));
  CHECK(made.numbers_in(gap) == Numbers{1, 3});
  CHECK(gap.gaps == std::vector<Range>{made.records[1]});
  made.flip_log(made.records[2]);
  made.flip_copy(made.records[2]);
  const JournalTail end = must(made.journal.read(0));
  CHECK(made.numbers_in(end) == Numbers{1});
  CHECK(end.gaps.empty());
  CHECK(end.end == made.records[1].offset);
  CHECK(end.size == made.counters.journal_end);
}

TEST_CASE("a record at another offset than its own is ignored") {
  const ThreeRecords made;
  const std::string log = read_text(made.log());
  write_file(made.log(), log + log.substr(0, made.records[0].length));
  CHECK(made.numbers() == Numbers{1, 2, 3});
}

TEST_CASE("a damaged mark leaves the previous one") {
  const ThreeRecords made;
  CHECK(must(made.journal.mark()).value().journal_end == made.counters.journal_end);
  made.flip(made.copy(), kMarkBlock);  // the marks alternate, and the first is that of create()
  CHECK(must(made.journal.mark()).value().journal_end == end_of(made.records[1]));
  made.flip(made.copy(), 0);
  CHECK_FALSE(must(made.journal.mark()));
}

TEST_CASE("a truncated journal ends before the removed records, and so does its mark") {
  ThreeRecords made;
  const std::uint64_t end = end_of(made.records[0]);
  must(made.journal.truncate(end));
  CHECK(must(made.journal.size()) == end);
  CHECK(made.numbers() == Numbers{1});
  CHECK(must(made.journal.mark()).value().journal_end == end);
  made.counters.journal_end = end;
  made.append(tag_event(7));
  CHECK(made.numbers() == Numbers{1, 7});
}

TEST_CASE("a record that is written and not flushed is in the log alone") {
  ThreeRecords made;
  const std::uint64_t begin = made.counters.journal_end;
  const auto record = encode_event(tag_event(4), begin);
  made.counters.journal_end += record.size();
  must(made.journal.write(record, made.counters));
  CHECK(made.numbers() == Numbers{1, 2, 3, 4});
  CHECK(must(made.journal.read(0)).damage.empty());
  CHECK(must(made.journal.mark()).value().journal_end == begin);
  CHECK(read_text(made.copy()).size() == kMarksBytes + begin);
  must(made.journal.flush(begin, made.counters));
  CHECK(must(made.journal.mark()).value().journal_end == made.counters.journal_end);
  CHECK(read_text(made.copy()).substr(kMarksBytes) == read_text(made.log()));
}
