#include "repair/compare.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "diskformat/pack_names.h"
#include "diskformat/toc.h"
#include "index/blobs.h"
#include "index/manifests.h"
#include "index/tables.h"
#include "packs/manifest_packs.h"
#include "weft/store/snapshot.h"

namespace weft {
namespace {

constexpr std::size_t kLinesPerTable = 10;
constexpr std::size_t kNotedMax = 1024;   // differing rows that are judged again together
constexpr std::size_t kRowsPerLock = 64;  // rows judged per lock, while writers wait
constexpr int kRoundsBeforeLock = 3;
constexpr unsigned kPagesLoaded = 32;  // calls of read_page() before this process drops the mapped pages

std::string readable(Bytes key) {
  bool text = !key.empty();
  for (char c : key) text = text && c >= ' ' && c <= '~';
  if (text) return std::string(key);
  std::string hex;
  for (char c : key) hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return hex;
}

// Identifies a row by its key, and in a table that keeps sets also by its value.
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

// The problem of a row that differs. If `unless` is set and its pack lists this blob there, there is no problem.
struct Finding {
  std::string_view what;  // "": no problem
  std::optional<ListedBlob> unless = {};
};

struct Transactions {
  Txn& have;
  Txn& want;
};

// Part of a table: the rows whose keys begin with `prefix`. `judge` decides about a row that differs.
struct Subject {
  Table table;
  std::string_view prefix;
  bool content;  // the rows are derived from manifests
  Result<Finding> (*judge)(Transactions txns, const RowKey& key, const Pair& row);
};

Result<Finding> as_it_is(Transactions /*txns*/, const RowKey& /*key*/, const Pair& row) {
  return Finding{difference(row)};
}

// A missing note is fine: saving a version at the origin deletes its note, and the journal has no record of that.
Result<Finding> fine_if_missing(Transactions /*txns*/, const RowKey& /*key*/, const Pair& row) {
  return row.have ? Finding{difference(row)} : Finding{};
}

// A version in the index alone is fine during its publish: the journal has no record of it yet.
Result<Finding> judge_version(Transactions txns, const RowKey& key, const Pair& row) {
  WEFT_TRY(const bool taking, has_note(txns.have, kAttaching, number_at(key.key, 0)));
  return taking && !row.want ? Finding{} : Finding{difference(row)};
}

// Four differences are fine. A blob that the index has as absent may be in a pack: a publish runs, or an eviction was
// interrupted. A place that only the index has is of a later fetch or repair, if the pack lists the blob. A row that gc
// erased may be back, as a dead blob, from a .toc that gc had no time to rewrite. A dead blob may have another number:
// no row of holders refers to it, and a rebuild skips the reaped version that gave it the last number.
Result<Finding> judge_blob(Transactions txns, const RowKey& key, const Pair& row) {
  if (!row.have) {
    WEFT_TRY(const std::optional<Bytes> dead, txns.want.get(Table::dead, key.key));
    return dead ? Finding{} : Finding{difference(row)};
  }
  WEFT_TRY(const BlobRow mine, row_from<BlobRow>(txns.have, Table::blobs, row.have->key, row.have->value));
  if (row.want) {
    WEFT_TRY(const BlobRow made, row_from<BlobRow>(txns.want, Table::blobs, row.want->key, row.want->value));
    WEFT_TRY(const std::optional<Bytes> dead, txns.want.get(Table::dead, key.key));
    if (!dead && made.number != mine.number) return Finding{difference(row)};
  }
  if (!mine.absent()) return Finding{difference(row), ListedBlob{blob_id(key.key), mine.place}};
  return row.want ? Finding{} : Finding{difference(row)};
}

// Different places of a manifest are fine: an interrupted gc leaves a manifest in two packs, or in a pack and a file.
// If the index has it in a pack, that pack must list it.
Result<Finding> judge_manifest(Transactions txns, const RowKey& key, const Pair& row) {
  if (!row.have || !row.want) return Finding{difference(row)};
  WEFT_TRY(const auto mine, row_from<ManifestRow>(txns.have, Table::manifests, row.have->key, row.have->value));
  WEFT_TRY(const auto made, row_from<ManifestRow>(txns.want, Table::manifests, row.want->key, row.want->value));
  if (mine.versions != made.versions) return Finding{difference(row)};
  if (!mine.packed()) return Finding{};
  return Finding{difference(row), ListedBlob{packed_manifest_id(digest_of(key.key), mine.length), mine.place}};
}

// A dead blob that only one index has is judged in the table `blobs`, and fine here.
Result<Finding> judge_dead(Transactions txns, const RowKey& key, const Pair& row) {
  WEFT_TRY(const std::optional<Bytes> mine, txns.have.get(Table::blobs, key.key));
  WEFT_TRY(const std::optional<Bytes> made, txns.want.get(Table::blobs, key.key));
  const bool fine = row.have ? mine && !made : !mine;
  return fine ? Finding{} : Finding{difference(row)};
}

constexpr Subject kSubjects[] = {
    {Table::models, "", false, as_it_is},
    {Table::model_ids, "", false, as_it_is},
    {Table::former_names, "", false, as_it_is},
    {Table::names, "", false, as_it_is},
    {Table::dirs, "", false, as_it_is},
    {Table::versions, "", false, judge_version},
    {Table::numbers, "", false, as_it_is},
    {Table::tags, "", false, as_it_is},
    {Table::version_tags, "", false, as_it_is},
    {Table::tag_moves, "", false, as_it_is},
    {Table::locals, "", false, as_it_is},
    {Table::children, "", false, as_it_is},
    {Table::manifests, "", false, judge_manifest},
    {Table::revisions, "", false, as_it_is},
    {Table::commits, "", false, as_it_is},
    {Table::meta, kIncomplete, true, as_it_is},
    {Table::meta, kPinned, false, as_it_is},
    {Table::meta, kUnreaped, false, as_it_is},
    {Table::meta, kReleasing, true, as_it_is},
    {Table::meta, kPurged, false, as_it_is},
    {Table::meta, kUnsaved, false, fine_if_missing},
    // Judged by judge_cached(): a publish that died may have promoted a pack in its table of contents only.
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
    {Table::packs, "", true, nullptr},  // judged by judge_count()
};

// Returns the first row after `after`, or the subject's first row.
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

// Iterates over the rows of a subject in one index, from the row after `after`.
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

// Returns the place in the index of an entry of this pack; nothing if the index lacks it.
Result<std::optional<BlobPlace>> place_of(Txn& index, PackId pack, const PackEntry& entry) {
  if (kind_of_pack(pack) == PackKind::manifests) {
    WEFT_TRY(const std::optional<ManifestRow> row, find_manifest(index, manifest_digest(entry)));
    return row ? std::optional(row->place) : std::nullopt;
  }
  WEFT_TRY(const std::optional<FoundBlob> blob, find_blob(index, entry.id));
  return blob ? std::optional(blob->row.place) : std::nullopt;
}

class SubjectComparison {
 public:
  SubjectComparison(const ComparedIndexes& indexes, const Subject& subject, FsckReport& report)
      : indexes_(indexes), subject_(subject), report_(report) {}

  Status run() {
    unsigned pages = 0;
    while (more_ && lines_ < kLinesPerTable) {
      if (indexes_.progress.cancelled()) return Error{Errc::cancelled, "stopped"};
      WEFT_CHECK(read_page());
      if (++pages % kPagesLoaded == 0 || !more_) unload();
      if (noted_.size() >= kNotedMax || !more_) WEFT_CHECK(decide());
    }
    return {};
  }

 private:
  // Compares the next rows in one snapshot of each index, and notes those that differ. The index may be newer than the
  // rebuilt one.
  Status read_page() {
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
      if (!row.have || !row.want || row.have->value != row.want->value)
        WEFT_CHECK(note({have_txn, want_txn}, *at, row));
      if (row.have) WEFT_CHECK(have.next());
      if (row.want) WEFT_CHECK(want.next());
    }
    if (at) last_ = RowKey{std::string(at->key), std::string(at->value)};
    return {};
  }

  Status note(Transactions txns, const Entry& at, const Pair& row) {
    RowKey key{std::string(at.key), keeps_sets(subject_.table) ? std::string(at.value) : std::string()};
    WEFT_TRY(const Finding finding, judge(txns, key, row));
    if (!finding.what.empty()) noted_.push_back(std::move(key));
    return {};
  }

  // Returns the next row: from both indexes, or from the one index that has it.
  Pair pair_of(const Rows& have, const Rows& want) const {
    const std::optional<Entry>& a = have.here();
    const std::optional<Entry>& b = want.here();
    if (!a || !b) return {a, b};
    int order = a->key.compare(b->key);
    if (order == 0 && keeps_sets(subject_.table)) order = a->value.compare(b->value);
    return {order <= 0 ? a : std::nullopt, order >= 0 ? b : std::nullopt};
  }

  void unload() const {
    indexes_.have.unload_pages();
    indexes_.want.unload_pages();
  }

  Status decide() {
    for (int round = 0; round < kRoundsBeforeLock && !noted_.empty(); ++round) WEFT_CHECK(drop_agreeing());
    while (!noted_.empty() && lines_ < kLinesPerTable) WEFT_CHECK(judge_locked());
    noted_.clear();
    return {};
  }

  // Drops noted rows that agree after the rebuilt index has caught up: writers had changed them.
  Status drop_agreeing() {
    WEFT_CHECK(indexes_.follow());
    std::vector<RowKey> left;
    for (RowKey& row : noted_) {
      WEFT_TRY(const std::string_view what, verdict_of(row));
      if (!what.empty()) left.push_back(std::move(row));
    }
    noted_ = std::move(left);
    return {};
  }

  // Judges some noted rows under the writer lock, where no writer changes them, and reports the problems.
  Status judge_locked() {
    WEFT_TRY(const WriterLock lock, indexes_.lock());
    WEFT_CHECK(indexes_.follow());
    const std::size_t count = std::min(noted_.size(), kRowsPerLock);
    for (std::size_t i = 0; i < count && lines_ < kLinesPerTable; ++i) {
      WEFT_TRY(const std::string_view what, verdict_of(noted_[i]));
      if (!what.empty() && (!subject_.content || indexes_.has_content())) tell(noted_[i], what);
    }
    noted_.erase(noted_.begin(), noted_.begin() + static_cast<std::ptrdiff_t>(count));
    return {};
  }

  // Judges a row in the current state of both indexes. Returns the problem; "" if there is none.
  Result<std::string_view> verdict_of(const RowKey& row) const {
    if (subject_.judge == nullptr) return subject_.table == Table::packs ? judge_count(row) : judge_cached(row);
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

  Result<Finding> judge(Transactions txns, const RowKey& key, const Pair& row) const {
    const bool same = (!row.have && !row.want) || (row.have && row.want && row.have->value == row.want->value);
    if (same) return Finding{};
    return subject_.judge == nullptr ? Finding{difference(row)} : subject_.judge(txns, key, row);
  }

  // Reports a missing `cached` note of a cached pack in which the index places blobs.
  Result<std::string_view> judge_cached(const RowKey& row) const {
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

  // Compares the count of a pack's blobs or manifests in the index with the number of listed ones that the index places
  // there.
  Result<std::string_view> judge_count(const RowKey& row) const {
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

  void tell(const RowKey& row, std::string_view what) {
    ++lines_;
    std::string which = fmt::format("row {}", readable(row.key));
    if (!subject_.prefix.empty())
      which = fmt::format("note {} of {:x}", subject_.prefix, number_at(row.key, subject_.prefix.size()));
    report_.problems.push_back(
        fmt::format("index: table {}: {} {}; run `weft fsck --rebuild`", table_name(subject_.table), which, what));
  }

  const ComparedIndexes& indexes_;
  const Subject& subject_;
  FsckReport& report_;
  std::optional<RowKey> last_;  // last compared row
  bool more_ = true;
  std::vector<RowKey> noted_;
  std::size_t lines_ = 0;
};

// Reports counters of the index that are below the rebuilt ones. Counters only grow, so those of the index are read
// last.
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
