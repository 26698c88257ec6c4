#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "archindex/match.h"
#include "base/text.h"
#include "os/sys.h"
#include "store/store_impl.h"

namespace weft {
namespace {

template <class Row>
Result<Row> or_not_found(Result<std::optional<Row>> row, std::string_view what) {
  if (!row.ok()) return std::move(row).error();
  if (!*row) return Error{Errc::not_found, fmt::format("no {}", what)};
  return std::move(**row);
}

// Packs on disk, outside of the index.
Status count_packs(const SafePath& store_path, StoreCounts& counts) {
  const SafePath dir = store_path / "packs";
  WEFT_TRY(std::vector<std::string> names, list_directory(dir));
  for (const std::string& name : names) {
    if (!name.ends_with(".pack")) continue;
    auto st = stat_file(dir / name);
    if (!st.ok()) continue;  // gc just removed it
    ++counts.packs;
    counts.pack_disk_bytes += static_cast<std::uint64_t>(st->st_blocks) * 512;
  }
  return {};
}

class TxnSnapshot final : public Snapshot {
 public:
  TxnSnapshot(SafePath store_path, std::shared_ptr<const OpenVersions> open_versions, Txn txn, const Counters& counters)
      : store_path_(std::move(store_path)),
        open_versions_(std::move(open_versions)),
        txn_(std::move(txn)),
        counters_(counters) {}

  IndexState state() const override { return txn_.state(); }
  std::uint64_t sequence() const override { return counters_.sequence; }
  std::uint64_t lineage_clock() const override { return counters_.lineage_clock; }
  std::uint64_t journal_end() const override { return counters_.journal_end; }

  Result<ModelRow> model(std::string_view name) override {
    return or_not_found(find_model(txn_, name), fmt::format("model {}", printable(name)));
  }
  Result<ModelRow> model(ModelId id) override {
    WEFT_TRY(ModelNameRow name, or_not_found(find_row<ModelNameRow>(txn_, Table::model_ids, key_of(id)),
                                             fmt::format("model of id {}", id)));
    return need_row<ModelRow>(txn_, Table::models, name.name);
  }
  Result<std::vector<ModelRow>> models() override { return all_rows<ModelRow>(Table::models, {}); }

  Result<std::vector<NamespaceEntry>> namespace_entries(std::string_view prefix) override;
  Result<NamespaceEntry> namespace_entry(std::string_view prefix, std::string_view component) override;

  Result<VersionRow> version(VersionId id) override {
    return or_not_found(find_row<VersionRow>(txn_, Table::versions, key_of(id)), fmt::format("version of id {}", id));
  }
  Result<VersionRow> version(ModelId model, std::uint64_t number) override {
    return or_not_found(find_version(txn_, model, number), fmt::format("version {}", number));
  }
  Result<std::vector<VersionRow>> versions(ModelId model) override;
  Result<std::optional<VersionId>> first_with(ModelId model, std::span<const std::byte> revision) override;
  Result<std::vector<VersionId>> distinct(ModelId model) override;
  Result<std::vector<TagRow>> tags(ModelId model) override { return all_rows<TagRow>(Table::tags, key_of(model)); }
  Result<TagRow> tag(ModelId model, std::string_view name) override {
    return or_not_found(find_row<TagRow>(txn_, Table::tags, tag_key(model, name)),
                        fmt::format("tag {}", printable(name)));
  }
  Result<std::vector<VersionId>> children(VersionId id, std::size_t count_max) override;

  Result<LocalRow> local(VersionId id) override {
    return or_not_found(find_row<LocalRow>(txn_, Table::locals, key_of(id)), fmt::format("version of id {} here", id));
  }
  Result<std::uint64_t> owned_bytes(VersionId id, std::uint32_t file) override;
  Result<std::uint64_t> owned_bytes(VersionId id) override;
  Result<InodeRow> inode(Ino ino) override { return or_not_found(find_inode(txn_, ino), fmt::format("inode {}", ino)); }
  Result<VersionId> keeper(const InodeRow& view) override;

  Result<BlobPlace> find_blob(const ContentId& id) override {
    WEFT_TRY(FoundBlob blob, or_not_found(weft::find_blob(txn_, id), fmt::format("blob {}", to_hex(id.root))));
    if (blob.row.absent()) return Error{Errc::absent, fmt::format("blob {} is not on this node", to_hex(id.root))};
    return blob.row.place;
  }
  Result<std::vector<Holder>> holders(const ContentId& id) override {
    WEFT_TRY(FoundBlob blob, or_not_found(weft::find_blob(txn_, id), fmt::format("blob {}", to_hex(id.root))));
    return all_holders(txn_, blob);
  }
  Result<std::vector<Holder>> some_holders(const ContentId& id, std::size_t count_max) override {
    WEFT_TRY(FoundBlob blob, or_not_found(weft::find_blob(txn_, id), fmt::format("blob {}", to_hex(id.root))));
    return weft::some_holders(txn_, blob, count_max);
  }
  Result<std::optional<Holder>> owner(const ContentId& id) override {
    WEFT_TRY(std::optional<FoundBlob> blob, weft::find_blob(txn_, id));
    return blob ? first_holder(txn_, *blob) : Result<std::optional<Holder>>(std::nullopt);
  }
  Result<std::vector<MatchHit>> match(const MatchQuery& query) override { return match_architectures(txn_, query); }
  Result<std::uint64_t> open_removed() override;
  Result<StoreCounts> counts() override;
  std::uint64_t registry_revision() const override { return counters_.registry_revision; }
  Result<bool> is_bare(VersionId id) override { return is_incomplete(txn_, id); }
  Result<std::vector<VersionId>> bare_versions(VersionId from, std::size_t count_max) override {
    return noted(txn_, kIncomplete, from, count_max);
  }
  Result<std::vector<VersionId>> unsaved(VersionId from, std::size_t count_max) override {
    return noted(txn_, kUnsaved, from, count_max);
  }
  Result<std::vector<VersionId>> pinned() override { return noted(txn_, kPinned, 0, SIZE_MAX); }

 private:
  template <class Row>
  Result<std::vector<Row>> all_rows(Table table, Bytes prefix) {
    std::vector<Row> rows;
    WEFT_CHECK(each_entry(txn_, table, prefix, [&](const Entry& entry) -> Status {
      WEFT_TRY(Row row, row_from<Row>(txn_, table, entry.key, entry.value));
      rows.push_back(std::move(row));
      return {};
    }));
    return rows;
  }
  Status count_rows(StoreCounts& counts);
  Status count_blobs(StoreCounts& counts);
  Result<bool> has_view(VersionId version, Ino view);

  const SafePath store_path_;
  const std::shared_ptr<const OpenVersions> open_versions_;
  Txn txn_;
  const Counters counters_;
};

Result<std::vector<NamespaceEntry>> TxnSnapshot::namespace_entries(std::string_view prefix) {
  std::vector<NamespaceEntry> entries;
  std::string from = name_key(prefix, {});
  WEFT_CHECK(each_entry(txn_, Table::names, from, [&](const Entry& entry) -> Status {
    WEFT_TRY(NameRow row, row_from<NameRow>(txn_, Table::names, entry.key, entry.value));
    entries.push_back({std::string(entry.key.substr(from.size())), row.is_model, row.ino});
    return {};
  }));
  if (entries.empty() && !prefix.empty())
    return Error{Errc::not_found, fmt::format("no models below {}/", printable(prefix))};
  return entries;
}

Result<NamespaceEntry> TxnSnapshot::namespace_entry(std::string_view prefix, std::string_view component) {
  WEFT_TRY(NameRow row, or_not_found(find_row<NameRow>(txn_, Table::names, name_key(prefix, component)),
                                     fmt::format("model or directory {}", printable(component))));
  return NamespaceEntry{std::string(component), row.is_model, row.ino};
}

// Numbers are given out without gaps and kept for ever: a gap is damage.
Result<std::vector<VersionRow>> TxnSnapshot::versions(ModelId model) {
  std::vector<VersionRow> rows;
  std::uint64_t next = 1;
  WEFT_CHECK(each_entry(txn_, Table::numbers, key_of(model), [&](const Entry& entry) -> Status {
    if (number_at(entry.key, 8) != next++) return damaged(txn_, "a version's number is missing");
    WEFT_TRY(NumberRow id, row_from<NumberRow>(txn_, Table::numbers, entry.key, entry.value));
    if (id.value == kLostVersion) return {};
    WEFT_TRY(VersionRow row, need_row<VersionRow>(txn_, Table::versions, key_of(id.value)));
    rows.push_back(std::move(row));
    return {};
  }));
  WEFT_TRY(ModelRow row, this->model(model));
  if (row.next_number != next) return damaged(txn_, "a version's number is missing");
  return rows;
}

Result<std::vector<VersionId>> TxnSnapshot::children(VersionId id, std::size_t count_max) {
  std::vector<VersionId> children;
  std::string prefix = key_of(id);
  WEFT_TRY(Cursor cursor, txn_.cursor(Table::children));
  WEFT_TRY(std::optional<Entry> entry, cursor.seek(prefix));
  while (entry && entry->key.starts_with(prefix) && children.size() < count_max) {
    WEFT_CHECK(row_from<NumberRow>(txn_, Table::children, entry->key, entry->value));
    children.push_back(number_at(entry->key, 8));
    WEFT_TRY(entry, cursor.next());
  }
  return children;
}

Result<std::uint64_t> TxnSnapshot::owned_bytes(VersionId id, std::uint32_t file) {
  WEFT_TRY(std::optional<NumberRow> owned, find_row<NumberRow>(txn_, Table::owned, file_key(id, file)));
  if (owned) return owned->value;
  WEFT_TRY(VersionRow row, version(id));
  if (row.removed) return std::uint64_t{0};  // what it owned went to others, or is dead
  return Error{Errc::not_found, fmt::format("version of id {} has no file {}", id, file)};
}

Result<std::uint64_t> TxnSnapshot::owned_bytes(VersionId id) {
  std::uint64_t bytes = 0;
  WEFT_CHECK(each_entry(txn_, Table::owned, key_of(id), [&](const Entry& entry) -> Status {
    WEFT_TRY(const NumberRow owned, row_from<NumberRow>(txn_, Table::owned, entry.key, entry.value));
    bytes += owned.value;
    return {};
  }));
  return bytes;
}

Result<std::optional<VersionId>> TxnSnapshot::first_with(ModelId model, std::span<const std::byte> revision) {
  std::string prefix = key_of(model);
  prefix.append(reinterpret_cast<const char*>(revision.data()), revision.size());
  WEFT_TRY(Cursor cursor, txn_.cursor(Table::revisions));
  WEFT_TRY(const std::optional<Entry> entry, cursor.seek(prefix));
  if (!entry || !entry->key.starts_with(prefix)) return std::optional<VersionId>();
  return std::optional(number_at(entry->key, prefix.size()));
}

Result<std::vector<VersionId>> TxnSnapshot::distinct(ModelId model) {
  std::vector<VersionId> versions;
  std::string last;  // model and revision
  WEFT_CHECK(each_entry(txn_, Table::revisions, key_of(model), [&](const Entry& entry) -> Status {
    const Bytes revision = entry.key.substr(0, sizeof model + kRevisionBytes);
    if (revision == last) return {};
    last = revision;
    versions.push_back(number_at(entry.key, revision.size()));
    return {};
  }));
  return versions;
}

Status TxnSnapshot::count_rows(StoreCounts& counts) {
  WEFT_TRY(std::vector<ModelRow> all, models());
  counts.models = static_cast<std::uint64_t>(
      std::count_if(all.begin(), all.end(), [](const ModelRow& row) { return row.latest != 0; }));
  WEFT_TRY(std::vector<VersionRow> versions, all_rows<VersionRow>(Table::versions, {}));
  counts.versions = static_cast<std::uint64_t>(
      std::count_if(versions.begin(), versions.end(), [](const VersionRow& row) { return !row.removed; }));
  WEFT_TRY(counts.tags, txn_.count(Table::tags));
  return each_entry(txn_, Table::inodes, {}, [&](const Entry& entry) -> Status {
    WEFT_TRY(InodeRow row, row_from<InodeRow>(txn_, Table::inodes, entry.key, entry.value));
    if (row.view_links != 0) ++counts.views;
    return {};
  });
}

Status TxnSnapshot::count_blobs(StoreCounts& counts) {
  std::uint64_t all = 0;
  std::uint64_t dead = 0;
  WEFT_CHECK(each_entry(txn_, Table::blobs, {}, [&](const Entry& entry) -> Status {
    all += blob_length(entry.key);
    ++counts.blobs;
    WEFT_TRY(BlobRow blob, row_from<BlobRow>(txn_, Table::blobs, entry.key, entry.value));
    if (!blob.absent()) return {};
    ++counts.absent_blobs;
    counts.absent_bytes += blob_length(entry.key);
    return {};
  }));
  WEFT_CHECK(each_entry(txn_, Table::dead, {}, [&](const Entry& entry) -> Status {
    dead += blob_length(entry.key);
    --counts.blobs;
    return {};
  }));
  counts.dead_bytes = dead;
  counts.blob_bytes = all - dead;
  return {};
}

Result<std::uint64_t> TxnSnapshot::open_removed() {
  std::uint64_t count = 0;
  WEFT_TRY(const std::vector<VersionId> versions, noted(txn_, kUnreaped, 0, SIZE_MAX));
  for (const VersionId version : versions) {
    WEFT_TRY(const bool open, open_versions_->is_open(version));
    if (open) ++count;
  }
  return count;
}

Result<bool> TxnSnapshot::has_view(VersionId version, Ino view) {
  WEFT_TRY(const std::optional<LocalRow> local, find_row<LocalRow>(txn_, Table::locals, key_of(version)));
  return local && std::ranges::find(local->view_inos, view) != local->view_inos.end();
}

// Mostly the first version that had it. The last look, at all versions, is for views of removed versions alone, and for
// tensors without bytes, which have no holders.
Result<VersionId> TxnSnapshot::keeper(const InodeRow& view) {
  WEFT_TRY(const std::optional<VersionRow> first, find_row<VersionRow>(txn_, Table::versions, key_of(view.view_first)));
  if (first && !first->removed) return first->id;
  WEFT_TRY(const std::optional<FoundBlob> blob, weft::find_blob(txn_, view.view.content));
  std::vector<Holder> holders;
  if (blob) {
    WEFT_TRY(holders, all_holders(txn_, *blob));
  }
  for (const auto& holder : holders) {
    WEFT_TRY(const bool has, has_view(holder.first, view.base));
    if (has) return holder.first;
  }
  std::optional<VersionId> found;
  WEFT_CHECK(each_entry(txn_, Table::locals, {}, [&](const Entry& entry) -> Status {
    const VersionId version = number_at(entry.key, 0);
    WEFT_TRY(const bool has, has_view(version, view.base));
    if (!has) return {};
    WEFT_TRY(const VersionRow row, need_row<VersionRow>(txn_, Table::versions, entry.key));
    if (!found || !row.removed) found = version;
    return {};
  }));
  if (!found) return Error{Errc::not_found, fmt::format("no version has the view of inode {}", view.base)};
  return *found;
}

Result<StoreCounts> TxnSnapshot::counts() {
  StoreCounts counts;
  WEFT_CHECK(count_rows(counts));
  WEFT_CHECK(count_blobs(counts));
  WEFT_CHECK(count_packs(store_path_, counts));
  WEFT_TRY(counts.open_removed, open_removed());
  return counts;
}

}  // namespace

Result<std::unique_ptr<Snapshot>> StoreImpl::snapshot() {
  WEFT_TRY(Txn txn, env_->read());
  WEFT_TRY(Counters counters, get_counters(txn));
  return std::unique_ptr<Snapshot>(std::make_unique<TxnSnapshot>(path_, open_versions_, std::move(txn), counters));
}

}  // namespace weft
