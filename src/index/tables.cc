#include "index/tables.h"

#include <fmt/core.h>

#include "base/text.h"
#include "diskformat/hash.h"

namespace weft {
namespace {

constexpr Bytes kCountersKey = "counters";

std::span<const std::byte> raw(Bytes bytes) {
  return std::as_bytes(std::span(bytes));
}

std::uint64_t seed_of(Table table, Bytes key) {
  return xxh3_64(raw(key), xxh3_64(raw(table_name(table))));
}

}  // namespace

Error damaged(Txn& txn, std::string_view what) {
  return Error{Errc::corrupt, fmt::format("{}: {}; run `weft fsck --rebuild`", txn.path(), what)};
}

Result<std::vector<std::byte>> open_row(Txn& txn, Table table, Bytes key, Bytes value, RecordKind kind) {
  return open_record(kind, raw(value), fmt::format("{}: table {}", txn.path(), table_name(table)), seed_of(table, key));
}

Status put_row(Txn& txn, Table table, Bytes key, RecordKind kind, std::span<const std::byte> payload) {
  std::vector<std::byte> record = seal_record(kind, payload, seed_of(table, key));
  return txn.put(table, key, {reinterpret_cast<const char*>(record.data()), record.size()});
}

Status each_entry(Txn& txn, Table table, Bytes prefix, const std::function<Status(const Entry&)>& visit) {
  WEFT_TRY(Cursor cursor, txn.cursor(table));
  WEFT_TRY(std::optional<Entry> entry, cursor.seek(prefix));
  while (entry && entry->key.substr(0, prefix.size()) == prefix) {
    WEFT_CHECK(visit(*entry));
    WEFT_TRY(entry, cursor.next());
  }
  return {};
}

Result<Counters> get_counters(Txn& txn) {
  return need_row<Counters>(txn, Table::meta, kCountersKey);
}

Status put_counters(Txn& txn, const Counters& counters) {
  return put(txn, Table::meta, kCountersKey, counters);
}

Result<std::optional<FoundBlob>> find_blob(Txn& txn, const ContentId& id) {
  std::string key = blob_key(id);
  WEFT_TRY(std::optional<BlobRow> row, find_row<BlobRow>(txn, Table::blobs, key));
  if (row) return std::optional(FoundBlob{std::move(key), *row});
  // A blob whose row was lost must not look like one that never was: gc would free its bytes.
  WEFT_TRY(std::optional<Holder> holder, first_holder(txn, key));
  if (holder) return damaged(txn, "a blob that versions need has no row");
  return std::optional<FoundBlob>();
}

Status put_hint(Txn& txn, const ContentId& id, std::uint64_t hint) {
  if (hint == 0) return {};
  return put(txn, Table::hints, hint_key(id.length, hint), HintRow{id.root});
}

Status erase_hint(Txn& txn, const ContentId& id, std::uint64_t hint) {
  WEFT_TRY(const std::optional<ContentId> hinted, find_hinted(txn, id.length, hint));
  return hinted == id ? txn.erase(Table::hints, hint_key(id.length, hint)) : Status{};
}

Result<std::optional<ContentId>> find_hinted(Txn& txn, std::uint64_t length, std::uint64_t hint) {
  if (hint == 0) return std::optional<ContentId>();
  WEFT_TRY(const std::optional<HintRow> row, find_row<HintRow>(txn, Table::hints, hint_key(length, hint)));
  return row ? std::optional(ContentId{length, row->root}) : std::nullopt;
}

Result<std::optional<Holder>> first_holder(Txn& txn, Bytes blob_key) {
  WEFT_TRY(std::optional<Bytes> value, txn.get(Table::holders, blob_key));
  if (!value) return std::optional<Holder>();
  std::optional<Holder> holder = decode_holder(blob_key, *value);
  if (!holder) return damaged(txn, "a holder's checksum is wrong");
  return holder;
}

namespace {

// Appends what `entry` is, then what step() gives, at most `count_max`.
template <class Step>
Status take_holders(Txn& txn, Bytes blob_key, std::optional<Entry> entry, std::size_t count_max,
                    std::vector<Holder>& holders, const Step& step) {
  for (std::size_t count = 0; entry && count < count_max; ++count) {
    std::optional<Holder> holder = decode_holder(blob_key, entry->value);
    if (!holder) return damaged(txn, "a holder's checksum is wrong");
    holders.push_back(*holder);
    WEFT_TRY(entry, step());
  }
  return {};
}

}  // namespace

Result<std::vector<Holder>> holders_from(Txn& txn, Bytes blob_key, const Holder& from, std::size_t count_max) {
  std::vector<Holder> holders;
  WEFT_TRY(Cursor cursor, txn.cursor(Table::holders));
  WEFT_TRY(std::optional<Entry> entry, cursor.seek_value(blob_key, encode_holder(blob_key, from)));
  WEFT_CHECK(take_holders(txn, blob_key, entry, count_max, holders, [&] { return cursor.next_of_key(); }));
  return holders;
}

Result<std::vector<Holder>> some_holders(Txn& txn, Bytes blob_key, std::size_t count_max) {
  std::vector<Holder> holders;
  WEFT_TRY(Cursor cursor, txn.cursor(Table::holders));
  WEFT_TRY(std::optional<Entry> entry, cursor.seek_exact(blob_key));
  WEFT_CHECK(take_holders(txn, blob_key, entry, count_max, holders, [&] { return cursor.next_of_key(); }));
  if (holders.size() < count_max) return holders;
  std::vector<Holder> last;
  WEFT_TRY(entry, cursor.last_of_key());
  WEFT_CHECK(take_holders(txn, blob_key, entry, count_max, last, [&] { return cursor.previous_of_key(); }));
  std::reverse(last.begin(), last.end());
  auto beyond = std::upper_bound(last.begin(), last.end(), holders.back());
  holders.insert(holders.end(), beyond, last.end());
  return holders;
}

namespace {

Status add_links(Txn& txn, InodeRow& inode) {
  WEFT_TRY(ViewRow view, need_row<ViewRow>(txn, Table::views, view_key(inode.view)));
  if (view.ino != inode.base) return damaged(txn, fmt::format("view {} has another inode, {}", inode.base, view.ino));
  inode.view_links = view.links;
  inode.view_time_ns = view.time_ns;
  inode.view_first = view.first;
  return {};
}

}  // namespace

Result<std::optional<InodeRow>> find_inode(Txn& txn, Ino ino) {
  if (ino == UINT64_MAX) return std::optional<InodeRow>();
  WEFT_TRY(Cursor cursor, txn.cursor(Table::inodes));
  WEFT_TRY(std::optional<Entry> entry, cursor.seek_before(key_of(ino + 1)));
  if (!entry) return std::optional<InodeRow>();
  WEFT_TRY(InodeRow inode, row_from<InodeRow>(txn, Table::inodes, entry->key, entry->value));
  if (ino < inode.base || ino - inode.base >= inode.count) return std::optional<InodeRow>();
  if (inode.kind == InodeKind::view) {
    WEFT_CHECK(add_links(txn, inode));
  }
  return std::optional(std::move(inode));
}

Result<std::optional<VersionRow>> find_version(Txn& txn, ModelId model, std::uint64_t number) {
  WEFT_TRY(std::optional<NumberRow> id, find_row<NumberRow>(txn, Table::numbers, key_of(model, number)));
  if (!id || id->value == kLostVersion) return std::optional<VersionRow>();
  WEFT_TRY(VersionRow version, need_row<VersionRow>(txn, Table::versions, key_of(id->value)));
  return std::optional(std::move(version));
}

Result<std::optional<ModelRow>> find_model(Txn& txn, std::string_view name) {
  return find_row<ModelRow>(txn, Table::models, name);
}

std::string note_key(std::string_view note, std::uint64_t id) {
  return std::string(note) + key_of(id);
}

Status put_note(Txn& txn, std::string_view note, std::uint64_t id) {
  return put(txn, Table::meta, note_key(note, id), NumberRow{0});
}

Status erase_note(Txn& txn, std::string_view note, std::uint64_t id) {
  return txn.erase(Table::meta, note_key(note, id));
}

Result<bool> has_note(Txn& txn, std::string_view note, std::uint64_t id) {
  WEFT_TRY(std::optional<NumberRow> row, find_row<NumberRow>(txn, Table::meta, note_key(note, id)));
  return row.has_value();
}

Result<std::vector<std::uint64_t>> noted(Txn& txn, std::string_view note, std::uint64_t from, std::size_t count_max) {
  std::vector<std::uint64_t> ids;
  WEFT_TRY(Cursor cursor, txn.cursor(Table::meta));
  WEFT_TRY(std::optional<Entry> entry, cursor.seek(note_key(note, from)));
  while (entry && entry->key.starts_with(note) && ids.size() < count_max) {
    WEFT_CHECK(row_from<NumberRow>(txn, Table::meta, entry->key, entry->value));
    ids.push_back(number_at(entry->key, note.size()));
    WEFT_TRY(entry, cursor.next());
  }
  return ids;
}

}  // namespace weft
