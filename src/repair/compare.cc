#include "repair/compare.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "base/text.h"
#include "diskformat/pack_names.h"
#include "index/blobs.h"
#include "index/tables.h"

namespace weft {
namespace {

constexpr std::size_t kLinesPerTable = 10;

std::string readable(Bytes key) {
  bool text = !key.empty();
  for (char c : key) text = text && c >= ' ' && c <= '~';
  if (text) return std::string(key);
  std::string hex;
  for (char c : key) hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return hex;
}

// One table of both indexes, side by side.
class TableComparison {
 public:
  using Excuse = std::function<Result<bool>(Bytes key)>;
  TableComparison(Txn& have, Txn& want, Table table, FsckReport& report)
      : have_(have), want_(want), table_(table), report_(report) {}

  // `same` says whether two values of one key agree; the excuses, whether a row may be there or not be there.
  std::function<Result<bool>(const Entry& have, const Entry& want)> same = [](const Entry& a, const Entry& b) {
    return Result<bool>(a.value == b.value);
  };
  Excuse may_be_missing = [](Bytes) { return Result<bool>(false); };

  Status run() {
    WEFT_TRY(Cursor have, have_.cursor(table_));
    WEFT_TRY(Cursor want, want_.cursor(table_));
    WEFT_TRY(std::optional<Entry> a, have.seek({}));
    WEFT_TRY(std::optional<Entry> b, want.seek({}));
    while (a || b) {
      int order = !a ? 1 : !b ? -1 : compare(*a, *b);
      WEFT_CHECK(judge(order, a, b));
      if (order <= 0) {
        WEFT_TRY(a, have.next());
      }
      if (order >= 0) {
        WEFT_TRY(b, want.next());
      }
    }
    return {};
  }

 private:
  // Values of one key are entries of their own in a table that keeps sets.
  int compare(const Entry& a, const Entry& b) const {
    int order = a.key.compare(b.key);
    return order != 0 || !keeps_sets(table_) ? order : a.value.compare(b.value);
  }

  Status judge(int order, const std::optional<Entry>& a, const std::optional<Entry>& b) {
    if (order < 0) tell("should not be there", a->key);
    if (order == 0) {
      WEFT_TRY(bool equal, same(*a, *b));
      if (!equal) tell("differs", a->key);
    }
    if (order > 0) {
      WEFT_TRY(bool excused, may_be_missing(b->key));
      if (!excused) tell("is missing", b->key);
    }
    return {};
  }

  void tell(std::string_view what, Bytes key) {
    if (++lines_ <= kLinesPerTable)
      report_.problems.push_back(fmt::format("index: table {}: row {} {}; run `weft fsck --rebuild`",
                                             table_name(table_), readable(key), what));
  }

  Txn& have_;
  Txn& want_;
  const Table table_;
  FsckReport& report_;
  std::size_t lines_ = 0;
};

// What is not here may lie in a pack all the same: of a publish that is on its way, or of an eviction that was cut off.
Result<bool> same_blob(Txn& have, const Entry& a, Txn& want, const Entry& b) {
  if (a.value == b.value) return true;
  WEFT_TRY(BlobRow mine, row_from<BlobRow>(have, Table::blobs, a.key, a.value));
  WEFT_TRY(BlobRow made, row_from<BlobRow>(want, Table::blobs, b.key, b.value));
  return mine.absent() || mine.place == made.place;
}

// The two indexes number their blobs each in its own way, so rows of holders do not compare, but lists of holders do.
Status compare_holders(Txn& have, Txn& want, FsckReport& report) {
  std::size_t lines = 0;
  std::uint64_t listed = 0;
  WEFT_CHECK(each_entry(have, Table::blobs, {}, [&](const Entry& entry) -> Status {
    WEFT_TRY(BlobRow row, row_from<BlobRow>(have, Table::blobs, entry.key, entry.value));
    const FoundBlob mine{std::string(entry.key), row};
    WEFT_TRY(const std::optional<FoundBlob> made, find_blob(want, blob_id(entry.key)));
    WEFT_TRY(const std::vector<Holder> holders, all_holders(have, mine));
    listed += holders.size();
    std::vector<Holder> expected;
    if (made) {
      WEFT_TRY(expected, all_holders(want, *made));
    }
    if (holders != expected && ++lines <= kLinesPerTable)
      report.problems.push_back(
          fmt::format("index: table holders: blob {} has {} holders, expected {}; run `weft fsck --rebuild`",
                      readable(entry.key), holders.size(), expected.size()));
    return {};
  }));
  WEFT_TRY(const std::uint64_t bits, count_holders(have));
  if (bits != listed)
    report.problems.push_back(fmt::format(
        "index: table holders: {} bits are set, and blobs have {} holders; run `weft fsck --rebuild`", bits, listed));
  return {};
}

// Each pack's count of blobs, against the rows of this index itself.
Status compare_packs(Txn& have, FsckReport& report) {
  std::map<PackId, std::uint64_t> counted;
  WEFT_CHECK(each_entry(have, Table::blobs, {}, [&](const Entry& entry) -> Status {
    WEFT_TRY(BlobRow row, row_from<BlobRow>(have, Table::blobs, entry.key, entry.value));
    if (!row.absent()) ++counted[row.place.pack];
    return {};
  }));
  std::size_t lines = 0;
  const auto tell = [&](PackId pack, std::uint64_t expected, std::uint64_t got) {
    if (expected != got && ++lines <= kLinesPerTable)
      report.problems.push_back(
          fmt::format("index: table packs: pack {} has {} blobs, expected {}; run `weft fsck --rebuild`",
                      pack_name(pack), got, expected));
  };
  WEFT_CHECK(each_entry(have, Table::packs, {}, [&](const Entry& entry) -> Status {
    WEFT_TRY(const NumberRow row, row_from<NumberRow>(have, Table::packs, entry.key, entry.value));
    const auto found = counted.find(number_at(entry.key, 0));
    tell(number_at(entry.key, 0), found == counted.end() ? 0 : found->second, row.value);
    if (found != counted.end()) counted.erase(found);
    return {};
  }));
  for (const auto& [pack, count] : counted) tell(pack, count, 0);
  return {};
}

// Rows that gc erased come back from a .toc that it had no time to rewrite: as dead ones.
Status compare_blobs(Txn& have, Txn& want, FsckReport& report) {
  TableComparison blobs(have, want, Table::blobs, report);
  blobs.may_be_missing = [&](Bytes key) -> Result<bool> {
    WEFT_TRY(std::optional<Bytes> dead, want.get(Table::dead, key));
    return dead.has_value();
  };
  blobs.same = [&](const Entry& a, const Entry& b) { return same_blob(have, a, want, b); };
  WEFT_CHECK(blobs.run());
  TableComparison dead(have, want, Table::dead, report);
  dead.may_be_missing = [&](Bytes key) -> Result<bool> {
    WEFT_TRY(std::optional<Bytes> known, have.get(Table::blobs, key));
    return !known.has_value();
  };
  return dead.run();
}

// Packs that blobs lie in, as the index says.
Result<std::set<PackId>> named_packs(Txn& txn) {
  std::set<PackId> packs;
  WEFT_CHECK(each_entry(txn, Table::blobs, {}, [&](const Entry& entry) -> Status {
    WEFT_TRY(BlobRow blob, row_from<BlobRow>(txn, Table::blobs, entry.key, entry.value));
    packs.insert(blob.place.pack);
    return {};
  }));
  return packs;
}

using Ids = std::vector<std::uint64_t>;

Status compare_notes(Txn& have, Txn& want, std::string_view note,
                     const std::function<bool(std::uint64_t id, bool missing)>& excused, FsckReport& report) {
  WEFT_TRY(Ids mine, noted(have, note, 0, SIZE_MAX));
  WEFT_TRY(Ids made, noted(want, note, 0, SIZE_MAX));
  Ids differing;
  std::set_symmetric_difference(mine.begin(), mine.end(), made.begin(), made.end(), std::back_inserter(differing));
  for (std::uint64_t id : differing) {
    const bool missing = std::binary_search(made.begin(), made.end(), id);
    if (excused(id, missing)) continue;
    report.problems.push_back(fmt::format("index: table meta: note {} of {:x} {}; run `weft fsck --rebuild`", note, id,
                                          missing ? "is missing" : "should not be there"));
  }
  return {};
}

// Which packs are cached their tables of contents say first: a publish that died may have made one its own, and an
// index that names no blob of a pack says nothing of it.
Status compare_all_notes(Txn& have, Txn& want, bool content, FsckReport& report) {
  auto never = [](std::uint64_t, bool) { return false; };
  if (content) WEFT_CHECK(compare_notes(have, want, kIncomplete, never, report));
  WEFT_CHECK(compare_notes(have, want, kPinned, never, report));
  WEFT_CHECK(compare_notes(have, want, kUnreaped, never, report));
  auto saved = [](std::uint64_t, bool missing) { return missing; };
  WEFT_CHECK(compare_notes(have, want, kUnsaved, saved, report));
  WEFT_TRY(Ids cached, noted(want, kCached, 0, 1));
  if (cached.empty()) return {};
  WEFT_TRY(std::set<PackId> named, named_packs(have));
  auto unnamed = [&named](std::uint64_t id, bool missing) { return !missing || !named.contains(id); };
  return compare_notes(have, want, kCached, unnamed, report);
}

Status compare_counters(Txn& have, Txn& want, FsckReport& report) {
  WEFT_TRY(Counters mine, get_counters(have));
  WEFT_TRY(Counters made, get_counters(want));
  auto tell = [&report](std::string_view what, std::uint64_t expected, std::uint64_t got) {
    if (got < expected)
      report.problems.push_back(fmt::format(
          "index: counter {}: expected at least {}, got {}; run `weft fsck --rebuild`", what, expected, got));
  };
  tell("next_version", made.next_version, mine.next_version);
  tell("next_model", made.next_model, mine.next_model);
  tell("next_ino", made.next_ino, mine.next_ino);
  return {};
}

}  // namespace

Status compare_indexes(Txn& have, Txn& want, bool content, FsckReport& report) {
  WEFT_CHECK(compare_counters(have, want, report));
  for (Table table : {Table::models, Table::model_ids, Table::names, Table::dirs, Table::versions, Table::numbers,
                      Table::tags, Table::locals, Table::children, Table::manifests, Table::revisions})
    WEFT_CHECK(TableComparison(have, want, table, report).run());
  WEFT_CHECK(compare_all_notes(have, want, content, report));
  if (!content) return {};
  for (Table table : {Table::owned, Table::views, Table::inodes, Table::architectures, Table::arch_of,
                      Table::arch_versions, Table::arch_items})
    WEFT_CHECK(TableComparison(have, want, table, report).run());
  WEFT_CHECK(compare_blobs(have, want, report));
  WEFT_CHECK(compare_holders(have, want, report));
  return compare_packs(have, report);
}

}  // namespace weft
