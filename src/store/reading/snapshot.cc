#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "archindex/match.h"
#include "base/text.h"
#include "index/blobs.h"
#include "index/pages.h"
#include "index/tables.h"
#include "store/reading/queries.h"
#include "weft/store/publish.h"

namespace weft {
namespace {

template <class Row>
Result<Row> or_not_found(Result<std::optional<Row>> row, std::string_view what) {
  if (!row.ok()) return std::move(row).error();
  if (!*row) return Error{Errc::not_found, fmt::format("no {}", what)};
  return std::move(**row);
}

// Parses the start of a listing; nothing for "", the beginning.
Result<std::optional<std::uint64_t>> number_in(std::string_view from) {
  if (from.empty()) return std::optional<std::uint64_t>();
  const auto number = parse_u64(from);
  if (!number) return Error{Errc::invalid, fmt::format("expected where a listing goes on, got {}", printable(from))};
  return number;
}

// Return Page::next for a key that ends with a number or with a name.
std::string number_behind(Bytes key, std::size_t offset) {
  return key.empty() ? std::string() : std::to_string(number_at(key, offset));
}
std::string name_behind(Bytes key, std::size_t offset) {
  return key.empty() ? std::string() : std::string(key.substr(offset));
}

NamespaceEntry entry_of(std::string_view component, const NameRow& row) {
  return {std::string(component), row.is_model, row.ino, row.live - row.datasets, row.datasets};
}

class TxnSnapshot final : public Snapshot {
 public:
  TxnSnapshot(Txn txn, const Counters& counters, std::string node)
      : txn_(std::move(txn)), counters_(counters), node_(std::move(node)) {}

  IndexState state() const override { return txn_.state(); }
  std::uint64_t sequence() const override { return counters_.sequence; }
  std::uint64_t lineage_clock() const override { return counters_.lineage_clock; }
  std::uint64_t last_rename() const override { return counters_.last_rename; }
  std::uint64_t journal_end() const override { return counters_.journal_end; }

  Result<ModelRow> model(std::string_view name) override {
    WEFT_TRY(std::optional<ModelRow> known, find_model(txn_, name));
    return known ? Result<ModelRow>(*std::move(known)) : no_model(txn_, name);
  }
  Result<std::optional<ModelRow>> renamed(std::string_view name) override { return find_renamed(txn_, name); }
  Result<ModelRow> model(ModelId id) override {
    WEFT_TRY(ModelNameRow name, or_not_found(find_row<ModelNameRow>(txn_, Table::model_ids, key_of(id)),
                                             fmt::format("model of id {}", id)));
    return need_row<ModelRow>(txn_, Table::models, name.name);
  }
  Result<Page<ModelRow>> models(std::string_view from, std::string_view prefix, std::size_t rows_max) override {
    return rows<ModelRow>(Table::models, prefix, from, rows_max);
  }

  Result<Page<NamespaceEntry>> namespace_entries(std::string_view prefix, std::string_view from,
                                                 std::size_t rows_max) override {
    Page<NamespaceEntry> page;
    const std::string begin = name_key(prefix, {});
    const auto add = [&](const Entry& entry) -> Status {
      WEFT_TRY(NameRow row, row_from<NameRow>(txn_, Table::names, entry.key, entry.value));
      page.rows.push_back(entry_of(entry.key.substr(begin.size()), row));
      return {};
    };
    const std::string behind = from.empty() ? "" : name_key(prefix, from);
    WEFT_TRY(const std::string last, visit_page(txn_, Table::names, begin, behind, add, rows_max));
    page.next = name_behind(last, begin.size());
    if (page.rows.empty() && from.empty() && !prefix.empty())
      return Error{Errc::not_found, fmt::format("no models below {}/", printable(prefix))};
    return page;
  }

  Result<NamespaceEntry> namespace_entry(std::string_view prefix, std::string_view component) override {
    WEFT_TRY(NameRow row, or_not_found(find_row<NameRow>(txn_, Table::names, name_key(prefix, component)),
                                       fmt::format("model or directory {}", printable(component))));
    return entry_of(component, row);
  }

  Result<VersionRow> version(VersionId id) override {
    return or_not_found(find_row<VersionRow>(txn_, Table::versions, key_of(id)), fmt::format("version of id {}", id));
  }
  Result<VersionRow> version(ModelId model, std::uint64_t number) override {
    return or_not_found(find_version(txn_, model, number), fmt::format("version {}", number));
  }

  // A model's numbers have no gaps from its first one on and are never reused, so a gap is damage.
  Result<Page<VersionRow>> versions(ModelId model, std::string_view from, std::size_t rows_max) override {
    WEFT_TRY(const std::optional<std::uint64_t> begin, number_in(from));
    Page<VersionRow> page;
    WEFT_TRY(const ModelRow row, this->model(model));
    std::uint64_t next = std::max(begin.value_or(0) + 1, row.first_number);
    const auto add = [&](const Entry& entry) -> Status {
      if (number_at(entry.key, sizeof model) != next++) return damaged(txn_, "a version's number is missing");
      WEFT_TRY(NumberRow id, row_from<NumberRow>(txn_, Table::numbers, entry.key, entry.value));
      if (id.value == kLostVersion) return {};
      WEFT_TRY(VersionRow version, need_row<VersionRow>(txn_, Table::versions, key_of(id.value)));
      page.rows.push_back(std::move(version));
      return {};
    };
    const std::string behind = begin ? key_of(model, *begin) : "";
    WEFT_TRY(const std::string last, visit_page(txn_, Table::numbers, key_of(model), behind, add, rows_max));
    page.next = number_behind(last, sizeof model);
    if (!page.next.empty()) return page;
    if (begin && *begin >= row.next_number && page.rows.empty()) return page;
    if (row.next_number != next) return damaged(txn_, "a version's number is missing");
    return page;
  }

  Result<std::optional<VersionId>> with_revision(ModelId model, std::string_view revision) override {
    static_assert(kCommitDigits == 2 * kRevisionBytes);
    if (!is_commit_hash(revision)) return std::optional<VersionId>();
    const auto digest = digest_from_hex(std::string(revision) + std::string(2 * sizeof(Digest) - kCommitDigits, '0'));
    if (!digest) return std::optional<VersionId>();
    const std::string same = revision_key(model, *digest, 0).substr(0, sizeof model + kRevisionBytes);
    WEFT_TRY(Cursor revisions, txn_.cursor(Table::revisions));
    WEFT_TRY(std::optional<Entry> entry, revisions.seek(same));
    if (entry && entry->key.starts_with(same)) return std::optional(number_at(entry->key, same.size()));
    const std::string from = commit_key(model, revision, 0).substr(0, sizeof model + kCommitDigits);
    WEFT_TRY(Cursor commits, txn_.cursor(Table::commits));
    WEFT_TRY(entry, commits.seek_before(from + key_of(UINT64_MAX)));
    if (!entry || !entry->key.starts_with(from)) return std::optional<VersionId>();
    return std::optional(number_at(entry->key, from.size()));
  }

  // Reads one row per revision, however many versions have it.
  Result<Page<VersionId>> distinct(ModelId model, std::string_view from, std::size_t rows_max) override {
    WEFT_TRY(const std::optional<std::uint64_t> begin, number_in(from));
    Page<VersionId> page;
    const std::string prefix = key_of(model);
    std::string last;  // key prefix: model and revision
    if (begin) {
      WEFT_TRY(const VersionRow row, version(*begin));
      last = revision_key(model, row.manifest, *begin).substr(0, sizeof model + kRevisionBytes);
    }
    WEFT_TRY(Cursor cursor, txn_.cursor(Table::revisions));
    for (;;) {
      WEFT_TRY(const auto entry, cursor.seek(last.empty() ? prefix : last + key_of(UINT64_MAX)));
      if (!entry || !entry->key.starts_with(prefix)) return page;
      if (page.rows.size() == rows_max) break;
      last = entry->key.substr(0, sizeof model + kRevisionBytes);
      page.rows.push_back(number_at(entry->key, last.size()));
    }
    page.next = std::to_string(page.rows.back());
    return page;
  }

  Result<Page<TagRow>> tags(ModelId model, std::string_view from, std::size_t rows_max) override {
    WEFT_TRY(auto page, rows<TagRow>(Table::tags, key_of(model), from.empty() ? "" : tag_key(model, from), rows_max));
    page.next = name_behind(page.next, sizeof model);
    return page;
  }
  Result<TagRow> tag(ModelId model, std::string_view name) override {
    return or_not_found(find_row<TagRow>(txn_, Table::tags, tag_key(model, name)),
                        fmt::format("tag {}", printable(name)));
  }

  Result<Page<TagMove>> tag_moves(ModelId model, std::string_view from) override {
    return rows<TagMove>(Table::tag_moves, key_of(model), from, limits::kRowsPerSnapshot);
  }

  Result<Page<std::string>> tags_of(ModelId model, std::uint64_t number, std::string_view from) override {
    Page<std::string> page;
    const std::string prefix = version_tag_key(model, number, {});
    const auto add = [&](const Entry& entry) -> Status {
      WEFT_CHECK(row_from<NumberRow>(txn_, Table::version_tags, entry.key, entry.value));
      page.rows.emplace_back(entry.key.substr(prefix.size()));
      return {};
    };
    const std::string behind = from.empty() ? "" : version_tag_key(model, number, from);
    WEFT_TRY(const std::string last, visit_page(txn_, Table::version_tags, prefix, behind, add));
    page.next = name_behind(last, prefix.size());
    return page;
  }

  Result<Page<VersionId>> children(VersionId id, std::string_view from, std::size_t rows_max) override {
    WEFT_TRY(const std::optional<std::uint64_t> begin, number_in(from));
    Page<VersionId> page;
    const auto add = [&](const Entry& entry) -> Status {
      WEFT_CHECK(row_from<NumberRow>(txn_, Table::children, entry.key, entry.value));
      page.rows.push_back(number_at(entry.key, sizeof id));
      return {};
    };
    const std::string behind = begin ? key_of(id, *begin) : "";
    WEFT_TRY(const std::string last, visit_page(txn_, Table::children, key_of(id), behind, add, rows_max));
    page.next = number_behind(last, sizeof id);
    return page;
  }

  Result<LocalRow> local(VersionId id) override {
    return or_not_found(find_row<LocalRow>(txn_, Table::locals, key_of(id)), fmt::format("version of id {} here", id));
  }

  Result<std::uint64_t> owned_bytes(VersionId id, std::uint32_t file) override {
    WEFT_TRY(std::optional<NumberRow> owned, find_row<NumberRow>(txn_, Table::owned, file_key(id, file)));
    if (owned) return owned->value;
    WEFT_TRY(VersionRow row, version(id));
    if (row.removed) return std::uint64_t{0};  // other versions own its bytes, or they are dead
    return Error{Errc::not_found, fmt::format("version of id {} has no file {}", id, file)};
  }

  Result<Page<std::uint64_t>> owned_by_files(VersionId id, std::string_view from) override {
    Page<std::uint64_t> page;
    WEFT_TRY(page.next, visit_page(txn_, Table::owned, key_of(id), from, [&](const Entry& entry) -> Status {
               WEFT_TRY(const NumberRow owned, row_from<NumberRow>(txn_, Table::owned, entry.key, entry.value));
               page.rows.push_back(owned.value);
               return {};
             }));
    return page;
  }

  Result<InodeRow> inode(Ino ino) override { return or_not_found(find_inode(txn_, ino), fmt::format("inode {}", ino)); }

  Result<BlobPlace> find_blob(const ContentId& id) override {
    WEFT_TRY(FoundBlob blob, or_not_found(weft::find_blob(txn_, id), fmt::format("blob {}", to_hex(id.root))));
    if (blob.row.absent()) return Error{Errc::absent, fmt::format("blob {} is not on this node", to_hex(id.root))};
    return blob.row.place;
  }
  Result<std::vector<Holder>> some_holders(const ContentId& id, std::size_t count_max) override {
    WEFT_TRY(const std::optional<FoundBlob> blob, weft::find_blob(txn_, id));
    return blob ? weft::some_holders(txn_, *blob, count_max) : Result<std::vector<Holder>>(std::vector<Holder>());
  }
  Result<std::optional<Holder>> owner(const ContentId& id) override {
    WEFT_TRY(std::optional<FoundBlob> blob, weft::find_blob(txn_, id));
    return blob ? first_holder(txn_, *blob) : Result<std::optional<Holder>>(std::nullopt);
  }
  Result<std::vector<MatchHit>> match(const MatchQuery& query) override { return match_architectures(txn_, query); }
  std::uint64_t registry_revision() const override { return counters_.registry_revision; }
  Result<bool> is_bare(VersionId id) override { return is_incomplete(txn_, id); }
  Result<std::vector<VersionId>> bare_versions(VersionId from, std::size_t count_max) override {
    return noted(txn_, kIncomplete, from, count_max);
  }
  Result<std::vector<VersionId>> unsaved(VersionId from, std::size_t count_max) override {
    return noted(txn_, kUnsaved, from, count_max);
  }

  Result<Durability> durability(const VersionRow& version) override {
    WEFT_TRY(const bool in_memory, has_note(txn_, kInMemory, version.id));
    if (in_memory) return Durability::memory;
    if (node_.empty() || version.publisher != node_) return Durability::local;
    WEFT_TRY(const bool unsaved, has_note(txn_, kUnsaved, version.id));
    return unsaved ? Durability::local : Durability::origin;
  }

  Result<std::vector<VersionId>> in_memory(VersionId from, std::size_t count_max) override {
    return noted(txn_, kInMemory, from, count_max);
  }
  Result<std::vector<VersionId>> pinned(VersionId from, std::size_t count_max) override {
    return noted(txn_, kPinned, from, count_max);
  }
  Result<std::vector<VersionId>> unreaped(VersionId from, std::size_t count_max) override {
    return noted(txn_, kUnreaped, from, count_max);
  }
  Result<std::vector<std::pair<VersionId, std::uint64_t>>> purged() override {
    std::vector<std::pair<VersionId, std::uint64_t>> all;
    WEFT_TRY(const auto ids, noted(txn_, kPurged, 0, SIZE_MAX));
    for (const VersionId id : ids) {
      WEFT_TRY(const auto time_ns, note_value(txn_, kPurged, id));
      all.emplace_back(id, time_ns.value_or(0));
    }
    return all;
  }

 private:
  template <class Row>
  Result<Page<Row>> rows(Table table, Bytes prefix, Bytes from, std::size_t rows_max) {
    Page<Row> page;
    const auto add = [&](const Entry& entry) -> Status {
      WEFT_TRY(Row row, row_from<Row>(txn_, table, entry.key, entry.value));
      page.rows.push_back(std::move(row));
      return {};
    };
    WEFT_TRY(page.next, visit_page(txn_, table, prefix, from, add, rows_max));
    return page;
  }

  Txn txn_;
  const Counters counters_;
  const std::string node_;  // this node's uuid; "" without a cluster
};

}  // namespace

Result<std::unique_ptr<Snapshot>> open_snapshot(StoreParts& parts) {
  WEFT_TRY(Txn txn, parts.index.read());
  WEFT_TRY(Counters counters, get_counters(txn));
  return std::unique_ptr<Snapshot>(std::make_unique<TxnSnapshot>(
      std::move(txn), counters, parts.cluster.joined() ? parts.cluster.identity()->node : ""));
}

}  // namespace weft
