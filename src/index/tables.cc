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

Result<ModelNameRow> name_of(Txn& txn, ModelId model) {
  return need_row<ModelNameRow>(txn, Table::model_ids, key_of(model));
}

// True if the row is of a published version: a version in parts has no model yet.
bool is_named(const VersionRow& row) {
  return row.model != 0;
}

}  // namespace

template <>
Result<VersionRow> row_from<VersionRow>(Txn& txn, Table table, Bytes key, Bytes value) {
  WEFT_TRY(const std::vector<std::byte> payload, open_row(txn, table, key, value, record_kind_of<VersionRow>()));
  WEFT_TRY(VersionRow row, decode_row<VersionRow>(payload, table_name(table)));
  if (!is_named(row)) return row;
  WEFT_TRY(ModelNameRow name, name_of(txn, row.model));
  row.model_name = std::move(name.name);
  row.renamed = name.renamed;
  row.renamed_ns = name.renamed_ns;
  for (ParentRef& parent : row.parents) {
    if (parent.id == 0) continue;
    WEFT_TRY(const NumberRow model, need_row<NumberRow>(txn, Table::children, key_of(parent.id, row.id)));
    if (model.value == row.model) {
      parent.model = row.model_name;
      continue;
    }
    WEFT_TRY(name, name_of(txn, model.value));
    parent.model = std::move(name.name);
  }
  return row;
}

template <>
Status put<VersionRow>(Txn& txn, Table table, Bytes key, const VersionRow& row) {
  VersionRow stored = row;
  if (is_named(row)) {
    stored.model_name.clear();
    for (ParentRef& parent : stored.parents)
      if (parent.id != 0) parent.model.clear();
  }
  return put_row(txn, table, key, record_kind_of<VersionRow>(), encode_row(stored));
}

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

Result<std::optional<InodeRow>> find_inode(Txn& txn, Ino ino) {
  if (ino == UINT64_MAX) return std::optional<InodeRow>();
  WEFT_TRY(Cursor cursor, txn.cursor(Table::inodes));
  WEFT_TRY(std::optional<Entry> entry, cursor.seek_before(key_of(ino + 1)));
  if (!entry) return std::optional<InodeRow>();
  WEFT_TRY(InodeRow inode, row_from<InodeRow>(txn, Table::inodes, entry->key, entry->value));
  if (ino < inode.base || ino - inode.base >= inode.count) return std::optional<InodeRow>();
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

Result<std::optional<ModelRow>> find_renamed(Txn& txn, std::string_view name) {
  WEFT_TRY(const std::optional<FormerNameRow> former, find_row<FormerNameRow>(txn, Table::former_names, name));
  if (!former) return std::optional<ModelRow>();
  WEFT_TRY(const ModelNameRow now, name_of(txn, former->model));
  WEFT_TRY(ModelRow model, need_row<ModelRow>(txn, Table::models, now.name));
  return std::optional(std::move(model));
}

Error no_model(Txn& txn, std::string_view name) {
  const auto renamed = find_renamed(txn, name);
  if (!renamed.ok()) return renamed.error();
  if (!*renamed) return Error{Errc::not_found, fmt::format("no model {}", printable(name))};
  return Error{Errc::not_found, fmt::format("{} was renamed to {}", name, (*renamed)->name)};
}

std::string note_key(std::string_view note, std::uint64_t id) {
  return std::string(note) + key_of(id);
}

Status put_note(Txn& txn, std::string_view note, std::uint64_t id, std::uint64_t value) {
  return put(txn, Table::meta, note_key(note, id), NumberRow{value});
}

Status erase_note(Txn& txn, std::string_view note, std::uint64_t id) {
  return txn.erase(Table::meta, note_key(note, id));
}

Result<bool> has_note(Txn& txn, std::string_view note, std::uint64_t id) {
  WEFT_TRY(const std::optional<std::uint64_t> value, note_value(txn, note, id));
  return value.has_value();
}

Result<std::optional<std::uint64_t>> note_value(Txn& txn, std::string_view note, std::uint64_t id) {
  WEFT_TRY(const std::optional<NumberRow> row, find_row<NumberRow>(txn, Table::meta, note_key(note, id)));
  return row ? std::optional(row->value) : std::nullopt;
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
