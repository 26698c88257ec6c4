#include "store/compare.h"

#include <functional>
#include <string>

#include <fmt/core.h>

#include "base/text.h"
#include "store/tables.h"

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

// Rows that gc erased come back from a .toc that it had no time to rewrite: as dead ones.
Status compare_blobs(Txn& have, Txn& want, FsckReport& report) {
  TableComparison blobs(have, want, Table::blobs, report);
  blobs.may_be_missing = [&](Bytes key) -> Result<bool> {
    WEFT_TRY(std::optional<Bytes> dead, want.get(Table::dead, key));
    return dead.has_value();
  };
  WEFT_CHECK(blobs.run());
  TableComparison dead(have, want, Table::dead, report);
  dead.may_be_missing = [&](Bytes key) -> Result<bool> {
    WEFT_TRY(std::optional<Bytes> known, have.get(Table::blobs, key));
    return !known.has_value();
  };
  return dead.run();
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
                      Table::tags, Table::locals, Table::children, Table::manifests})
    WEFT_CHECK(TableComparison(have, want, table, report).run());
  if (!content) return {};
  for (Table table : {Table::owned, Table::holders, Table::views, Table::inodes, Table::architectures, Table::arch_of,
                      Table::arch_versions, Table::arch_items})
    WEFT_CHECK(TableComparison(have, want, table, report).run());
  return compare_blobs(have, want, report);
}

}  // namespace weft
