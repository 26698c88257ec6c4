#include "repair/compare.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "base/text.h"
#include "diskformat/pack_names.h"
#include "diskformat/toc.h"
#include "index/blobs.h"
#include "index/manifests.h"
#include "index/tables.h"
#include "packs/manifest_packs.h"
#include "weft/snapshot.h"

namespace weft {
namespace {

constexpr std::size_t kLinesPerTable = 10;
constexpr std::size_t kNotedMax = 1024;   // rows that are looked at again together
constexpr std::size_t kRowsPerLock = 64;  // of these, while writers wait
constexpr int kRoundsBeforeLock = 3;
constexpr unsigned kPagesLoaded = 32;  // then what was compared leaves this process's memory

std::string readable(Bytes key) {
  bool text = !key.empty();
  for (char c : key) text = text && c >= ' ' && c <= '~';
  if (text) return std::string(key);
  std::string hex;
  for (char c : key) hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return hex;
}

// A row by its key, and in a table that keeps sets by its value.
struct RowKey {
  std::string key, value;
};

// One row in both indexes.
struct Pair {
  std::optional<Entry> have, want;
};

std::string_view difference(const Pair& row) {
  if (!row.want) return "should not be there";
  return row.have ? "differs" : "is missing";
}

struct ListedBlob {
  ContentId id;
  BlobPlace place;
};

// What is wrong with a row that differs. If `unless` is given, nothing is if the pack lists this blob there.
struct Finding {
  std::string_view what;  // "": nothing
  std::optional<ListedBlob> unless = {};
};

struct Transactions {
  Txn& have;
  Txn& want;
};

// Part of a table: the rows whose keys begin with `prefix`. `judge` looks at a row that is not the same in both.
struct Subject {
  Table table;
  std::string_view prefix;
  bool content;  // follows from manifests
  Result<Finding> (*judge)(Transactions txns, const RowKey& key, const Pair& row);
};

Result<Finding> as_it_is(Transactions /*txns*/, const RowKey& /*key*/, const Pair& row) {
  return Finding{difference(row)};
}

// A note that the index has no more: a version was saved, and no record says so.
Result<Finding> fine_if_missing(Transactions /*txns*/, const RowKey& /*key*/, const Pair& row) {
  return row.have ? Finding{difference(row)} : Finding{};
}

// No record has a version that a publish has begun and not ended.
Result<Finding> judge_version(Transactions txns, const RowKey& key, const Pair& row) {
  WEFT_TRY(const bool taking, has_note(txns.have, kTaking, number_at(key.key, 0)));
  return taking && !row.want ? Finding{} : Finding{difference(row)};
}

// What is not here may lie in a pack all the same: of a publish that is on its way, or of an eviction that was cut off.
// A place that only the index names was fetched or repaired meanwhile, if its pack lists the blob. Rows that gc erased
// come back from a .toc that it had no time to rewrite: as dead ones.
Result<Finding> judge_blob(Transactions txns, const RowKey& key, const Pair& row) {
  if (!row.have) {
    WEFT_TRY(const std::optional<Bytes> dead, txns.want.get(Table::dead, key.key));
    return dead ? Finding{} : Finding{difference(row)};
  }
  WEFT_TRY(const BlobRow mine, row_from<BlobRow>(txns.have, Table::blobs, row.have->key, row.have->value));
  if (row.want) {
    WEFT_TRY(const BlobRow made, row_from<BlobRow>(txns.want, Table::blobs, row.want->key, row.want->value));
    if (made.number != 0 && made.number != mine.number) return Finding{difference(row)};
  }
  if (!mine.absent()) return Finding{difference(row), ListedBlob{blob_id(key.key), mine.place}};
  return row.want ? Finding{} : Finding{difference(row)};
}

// A manifest may lie in two packs, or in a pack and as a file, if a gc was cut off. One that is a file in the index,
// and that packs list, was read from one of the two.
Result<Finding> judge_manifest(Transactions txns, const RowKey& key, const Pair& row) {
  if (!row.have || !row.want) return Finding{difference(row)};
  WEFT_TRY(const auto mine, row_from<ManifestRow>(txns.have, Table::manifests, row.have->key, row.have->value));
  WEFT_TRY(const auto made, row_from<ManifestRow>(txns.want, Table::manifests, row.want->key, row.want->value));
  if (mine.versions != made.versions) return Finding{difference(row)};
  if (!mine.packed()) return Finding{};
  return Finding{difference(row), ListedBlob{packed_manifest_id(digest_of(key.key), mine.length), mine.place}};
}

// A dead blob that only one of the indexes knows is a matter of the table of blobs.
Result<Finding> judge_dead(Transactions txns, const RowKey& key, const Pair& row) {
  WEFT_TRY(const std::optional<Bytes> mine, txns.have.get(Table::blobs, key.key));
  WEFT_TRY(const std::optional<Bytes> made, txns.want.get(Table::blobs, key.key));
  const bool fine = row.have ? mine && !made : !mine;
  return fine ? Finding{} : Finding{difference(row)};
}

constexpr Subject kSubjects[] = {
    {Table::models, "", false, as_it_is},
    {Table::model_ids, "", false, as_it_is},
    {Table::names, "", false, as_it_is},
    {Table::dirs, "", false, as_it_is},
    {Table::versions, "", false, judge_version},
    {Table::numbers, "", false, as_it_is},
    {Table::tags, "", false, as_it_is},
    {Table::version_tags, "", false, as_it_is},
    {Table::locals, "", false, as_it_is},
    {Table::children, "", false, as_it_is},
    {Table::manifests, "", false, judge_manifest},
    {Table::revisions, "", false, as_it_is},
    {Table::meta, kIncomplete, true, as_it_is},
    {Table::meta, kPinned, false, as_it_is},
    {Table::meta, kUnreaped, false, as_it_is},
    {Table::meta, kGivingBack, true, as_it_is},
    {Table::meta, kUnsaved, false, fine_if_missing},
    // Tables of contents say first which packs are cached: a publish that died may have made one its own.
    {Table::meta, kCached, false, nullptr},
    {Table::owned, "", true, as_it_is},
    {Table::holders, "", true, as_it_is},
    {Table::views, "", true, as_it_is},
    {Table::inodes, "", true, as_it_is},
    {Table::architectures, "", true, as_it_is},
    {Table::arch_of, "", true, as_it_is},
    {Table::arch_versions, "", true, as_it_is},
    {Table::arch_items, "", true, as_it_is},
    {Table::blobs, "", true, judge_blob},
    {Table::dead, "", true, judge_dead},
    {Table::packs, "", true, nullptr},  // each count is compared with the rows of the index itself
};

// The first row behind `after`, or the subject's first.
Result<std::optional<Entry>> begin_behind(Cursor& cursor, const Subject& subject, const std::optional<RowKey>& after) {
  if (!after) return cursor.seek(subject.prefix);
  if (!keeps_sets(subject.table)) {
    WEFT_TRY(const std::optional<Entry> entry, cursor.seek(after->key));
    return entry && entry->key == after->key ? cursor.next() : Result<std::optional<Entry>>(entry);
  }
  WEFT_TRY(const std::optional<Entry> entry, cursor.seek_value(after->key, after->value));
  if (!entry) return cursor.seek(after->key + '\0');
  return entry->value == after->value ? cursor.next() : Result<std::optional<Entry>>(entry);
}

Result<std::optional<Entry>> find_entry(Txn& txn, Table table, const RowKey& row) {
  if (!keeps_sets(table)) {
    WEFT_TRY(const std::optional<Bytes> value, txn.get(table, row.key));
    return value ? std::optional(Entry{row.key, *value}) : std::nullopt;
  }
  WEFT_TRY(Cursor cursor, txn.cursor(table));
  WEFT_TRY(const std::optional<Entry> entry, cursor.seek_value(row.key, row.value));
  return entry && entry->value == row.value ? entry : std::nullopt;
}

// The rows of a subject in one index, from a place on.
class Rows {
 public:
  static Result<Rows> begin(Txn& txn, const Subject& subject, const std::optional<RowKey>& after) {
    WEFT_TRY(Cursor cursor, txn.cursor(subject.table));
    Rows rows(std::move(cursor), subject.prefix);
    WEFT_TRY(const std::optional<Entry> entry, begin_behind(rows.cursor_, subject, after));
    rows.take(entry);
    return rows;
  }
  const std::optional<Entry>& here() const { return here_; }
  Status next() {
    WEFT_TRY(const std::optional<Entry> entry, cursor_.next());
    take(entry);
    return {};
  }

 private:
  Rows(Cursor cursor, std::string_view prefix) : cursor_(std::move(cursor)), prefix_(prefix) {}
  void take(const std::optional<Entry>& entry) {
    here_ = entry && entry->key.starts_with(prefix_) ? entry : std::nullopt;
  }
  Cursor cursor_;
  std::string_view prefix_;
  std::optional<Entry> here_;
};

class SubjectComparison {
 public:
  SubjectComparison(const ComparedIndexes& indexes, const Subject& subject, FsckReport& report)
      : indexes_(indexes), subject_(subject), report_(report) {}
  Status run();

 private:
  Status read_page();
  Status note(Transactions txns, const Entry& at, const Pair& row);
  Pair pair_of(const Rows& have, const Rows& want) const;
  void unload() const;
  Status decide();
  Status drop_agreeing();
  Status judge_locked();
  Result<std::string_view> look(const RowKey& row) const;
  Result<Finding> judge(Transactions txns, const RowKey& key, const Pair& row) const;
  Result<std::string_view> look_at_cached(const RowKey& row) const;
  Result<std::string_view> look_at_count(const RowKey& row) const;
  void tell(const RowKey& row, std::string_view what);

  const ComparedIndexes& indexes_;
  const Subject& subject_;
  FsckReport& report_;
  std::optional<RowKey> last_;  // compared so far
  bool more_ = true;
  std::vector<RowKey> noted_;
  std::size_t lines_ = 0;
};

// The rows that come next: the same one, or the one that the other index lacks.
Pair SubjectComparison::pair_of(const Rows& have, const Rows& want) const {
  const std::optional<Entry>& a = have.here();
  const std::optional<Entry>& b = want.here();
  if (!a || !b) return {a, b};
  int order = a->key.compare(b->key);
  if (order == 0 && keeps_sets(subject_.table)) order = a->value.compare(b->value);
  return {order <= 0 ? a : std::nullopt, order >= 0 ? b : std::nullopt};
}

Result<Finding> SubjectComparison::judge(Transactions txns, const RowKey& key, const Pair& row) const {
  const bool same = (!row.have && !row.want) || (row.have && row.want && row.have->value == row.want->value);
  if (same) return Finding{};
  return subject_.judge == nullptr ? Finding{difference(row)} : subject_.judge(txns, key, row);
}

Status SubjectComparison::note(Transactions txns, const Entry& at, const Pair& row) {
  RowKey key{std::string(at.key), keeps_sets(subject_.table) ? std::string(at.value) : std::string()};
  WEFT_TRY(const Finding finding, judge(txns, key, row));
  if (!finding.what.empty()) noted_.push_back(std::move(key));
  return {};
}

// Compares the next rows, in one state of each index. The index may be ahead of the one that was made.
Status SubjectComparison::read_page() {
  WEFT_TRY(Txn have_txn, indexes_.have.read());
  WEFT_TRY(Txn want_txn, indexes_.want.read());
  WEFT_TRY(Rows have, Rows::begin(have_txn, subject_, last_));
  WEFT_TRY(Rows want, Rows::begin(want_txn, subject_, last_));
  std::optional<Entry> at;
  for (std::size_t count = 0; count < limits::kRowsPerSnapshot; ++count) {
    const Pair row = pair_of(have, want);
    more_ = row.have || row.want;
    if (!more_) break;
    at = row.have ? row.have : row.want;
    if (!row.have || !row.want || row.have->value != row.want->value) WEFT_CHECK(note({have_txn, want_txn}, *at, row));
    if (row.have) WEFT_CHECK(have.next());
    if (row.want) WEFT_CHECK(want.next());
  }
  if (at) last_ = RowKey{std::string(at->key), std::string(at->value)};
  return {};
}

// The cached note of a pack that is cached, and in which the index names blobs, may not be missing.
Result<std::string_view> SubjectComparison::look_at_cached(const RowKey& row) const {
  const PackId pack = number_at(row.key, kCached.size());
  const auto toc = indexes_.packs.toc(pack);
  if (!toc.ok() || !toc->cached) return std::string_view();
  WEFT_TRY(Txn have, indexes_.have.read());
  WEFT_TRY(const bool there, has_note(have, kCached, pack));
  if (there) return std::string_view();
  for (const PackEntry& entry : toc->entries) {
    WEFT_TRY(const std::optional<FoundBlob> blob, find_blob(have, entry.id));
    if (blob && blob->row.place.pack == pack) return std::string_view("is missing");
  }
  return std::string_view();
}

// Where the index has an entry of this pack.
Result<std::optional<BlobPlace>> place_of(Txn& index, PackId pack, const PackEntry& entry) {
  if (kind_of_pack(pack) == PackKind::manifests) {
    WEFT_TRY(const std::optional<ManifestRow> row, find_manifest(index, manifest_digest(entry)));
    return row ? std::optional(row->place) : std::nullopt;
  }
  WEFT_TRY(const std::optional<FoundBlob> blob, find_blob(index, entry.id));
  return blob ? std::optional(blob->row.place) : std::nullopt;
}

// How many blobs or manifests the index counts in a pack, and how many of those that the pack lists it has there.
Result<std::string_view> SubjectComparison::look_at_count(const RowKey& row) const {
  const PackId pack = number_at(row.key, 0);
  const auto toc = indexes_.packs.toc(pack);
  WEFT_TRY(Txn have, indexes_.have.read());
  std::uint64_t count = 0;
  for (const PackEntry& entry : toc.ok() ? toc->entries : std::vector<PackEntry>()) {
    WEFT_TRY(const std::optional<BlobPlace> place, place_of(have, pack, entry));
    if (place == BlobPlace{pack, entry.offset}) ++count;
  }
  WEFT_TRY(const std::uint64_t counted, blobs_in_pack(have, pack));
  return count == counted ? std::string_view() : std::string_view("differs");
}

// What is wrong with this row now; "": nothing.
Result<std::string_view> SubjectComparison::look(const RowKey& row) const {
  if (subject_.judge == nullptr) return subject_.table == Table::packs ? look_at_count(row) : look_at_cached(row);
  Finding finding;
  {
    WEFT_TRY(Txn have, indexes_.have.read());
    WEFT_TRY(Txn want, indexes_.want.read());
    Pair pair;
    WEFT_TRY(pair.have, find_entry(have, subject_.table, row));
    WEFT_TRY(pair.want, find_entry(want, subject_.table, row));
    WEFT_TRY(finding, judge({have, want}, row, pair));
  }
  if (finding.what.empty() || !finding.unless) return finding.what;
  const auto toc = indexes_.packs.toc(finding.unless->place.pack);
  const bool listed = toc.ok() && lists_blob(*toc, finding.unless->id, finding.unless->place.offset);
  return listed ? std::string_view() : finding.what;
}

// Rows that writers have changed meanwhile agree once the other index has caught up.
Status SubjectComparison::drop_agreeing() {
  WEFT_CHECK(indexes_.follow());
  std::vector<RowKey> left;
  for (RowKey& row : noted_) {
    WEFT_TRY(const std::string_view what, look(row));
    if (!what.empty()) left.push_back(std::move(row));
  }
  noted_ = std::move(left);
  return {};
}

// Only the state that no writer changes can tell.
Status SubjectComparison::judge_locked() {
  WEFT_TRY(const WriterLock lock, indexes_.lock());
  WEFT_CHECK(indexes_.follow());
  const std::size_t count = std::min(noted_.size(), kRowsPerLock);
  for (std::size_t i = 0; i < count && lines_ < kLinesPerTable; ++i) {
    WEFT_TRY(const std::string_view what, look(noted_[i]));
    if (!what.empty() && (!subject_.content || indexes_.has_content())) tell(noted_[i], what);
  }
  noted_.erase(noted_.begin(), noted_.begin() + static_cast<std::ptrdiff_t>(count));
  return {};
}

Status SubjectComparison::decide() {
  for (int round = 0; round < kRoundsBeforeLock && !noted_.empty(); ++round) WEFT_CHECK(drop_agreeing());
  while (!noted_.empty() && lines_ < kLinesPerTable) WEFT_CHECK(judge_locked());
  noted_.clear();
  return {};
}

void SubjectComparison::tell(const RowKey& row, std::string_view what) {
  ++lines_;
  std::string which = fmt::format("row {}", readable(row.key));
  if (!subject_.prefix.empty())
    which = fmt::format("note {} of {:x}", subject_.prefix, number_at(row.key, subject_.prefix.size()));
  report_.problems.push_back(
      fmt::format("index: table {}: {} {}; run `weft fsck --rebuild`", table_name(subject_.table), which, what));
}

void SubjectComparison::unload() const {
  indexes_.have.unload_pages();
  indexes_.want.unload_pages();
}

Status SubjectComparison::run() {
  unsigned pages = 0;
  while (more_ && lines_ < kLinesPerTable) {
    if (indexes_.progress.cancelled()) return Error{Errc::cancelled, "stopped"};
    WEFT_CHECK(read_page());
    if (++pages % kPagesLoaded == 0 || !more_) unload();
    if (noted_.size() >= kNotedMax || !more_) WEFT_CHECK(decide());
  }
  return {};
}

// Counters only grow, and those of the index are read last.
Status compare_counters(const ComparedIndexes& indexes, FsckReport& report) {
  const auto read = [](Env& env) -> Result<Counters> {
    WEFT_TRY(Txn txn, env.read());
    return get_counters(txn);
  };
  WEFT_TRY(const Counters made, read(indexes.want));
  WEFT_TRY(const Counters mine, read(indexes.have));
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

Status compare_indexes(const ComparedIndexes& indexes, FsckReport& report) {
  WEFT_CHECK(compare_counters(indexes, report));
  for (const Subject& subject : kSubjects)
    if (!subject.content || indexes.has_content()) WEFT_CHECK(SubjectComparison(indexes, subject, report).run());
  return {};
}

}  // namespace weft
