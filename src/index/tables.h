// Typed rows of the index. Each row is checked against its checksum, table and key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "diskformat/keys.h"
#include "diskformat/record.h"
#include "diskformat/rows.h"
#include "index/env.h"
#include "weft/content.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

// Returns the error "STORE/index/data.mdb: WHAT; run `weft fsck --rebuild`".
Error damaged(Txn& txn, std::string_view what);

Result<std::vector<std::byte>> open_row(Txn& txn, Table table, Bytes key, Bytes value, RecordKind kind);
Status put_row(Txn& txn, Table table, Bytes key, RecordKind kind, std::span<const std::byte> payload);

template <class Row>
Result<Row> row_from(Txn& txn, Table table, Bytes key, Bytes value) {
  WEFT_TRY(std::vector<std::byte> payload, open_row(txn, table, key, value, record_kind_of<Row>()));
  return decode_row<Row>(payload, table_name(table));
}

// The row of a version stores neither the name of its model nor those of parents that the index has, so that a rename
// changes no such row. Reading gives it the present names.
template <>
Result<VersionRow> row_from<VersionRow>(Txn& txn, Table table, Bytes key, Bytes value);

template <class Row>
Result<std::optional<Row>> find_row(Txn& txn, Table table, Bytes key) {
  WEFT_TRY(std::optional<Bytes> value, txn.get(table, key));
  if (!value) return std::optional<Row>();
  WEFT_TRY(Row row, row_from<Row>(txn, table, key, *value));
  return std::optional<Row>(std::move(row));
}

// Reads a row that another row refers to. If it is missing, the index is damaged.
template <class Row>
Result<Row> need_row(Txn& txn, Table table, Bytes key) {
  WEFT_TRY(std::optional<Row> row, find_row<Row>(txn, table, key));
  if (!row) return damaged(txn, std::string(table_name(table)) + " lacks a row that others name");
  return std::move(*row);
}

template <class Row>
Status put(Txn& txn, Table table, Bytes key, const Row& row) {
  return put_row(txn, table, key, record_kind_of<Row>(), encode_row(row));
}
template <>
Status put<VersionRow>(Txn& txn, Table table, Bytes key, const VersionRow& row);

// Calls visit(entry) for all entries whose keys begin with `prefix`, in order. An error of `visit` ends the walk.
Status each_entry(Txn& txn, Table table, Bytes prefix, const std::function<Status(const Entry&)>& visit);

Result<Counters> get_counters(Txn& txn);
Status put_counters(Txn& txn, const Counters& counters);

Result<std::optional<InodeRow>> find_inode(Txn& txn, Ino ino);
Result<std::optional<VersionRow>> find_version(Txn& txn, ModelId model, std::uint64_t number);
Result<std::optional<ModelRow>> find_model(Txn& txn, std::string_view name);
// Returns the last model that had this name and was renamed; nothing if there is none.
Result<std::optional<ModelRow>> find_renamed(Txn& txn, std::string_view name);
// Returns the error for a name that no model has (Errc::not_found). If its model was renamed, names the new name.
Error no_model(Txn& txn, std::string_view name);

// Notes about single versions, in the table `meta`. The key is the note's name and the version's id. version_life.h
// says which of them stand together, and writes them. kIncomplete: a live version without content: bare, or a rebuild
// could not read its manifest. It holds no blobs, so gc must not run.
inline constexpr std::string_view kIncomplete = "incomplete";
inline constexpr std::string_view kUnsaved = "unsaved";  // published here, missing at the origin
inline constexpr std::string_view kPinned = "pinned";
inline constexpr std::string_view kInMemory = "memory";    // VersionNote::in_memory
inline constexpr std::string_view kUnreaped = "unreaped";  // removed, but gc has not reaped it yet
// Removed, but still a holder of its blobs. The value is the number of steps that were given back (release.h).
inline constexpr std::string_view kReleasing = "giving";
// A publish is taking its content in parts (catalog/attach.h). The value is the number of steps taken.
inline constexpr std::string_view kAttaching = "taking";
// A note about a removed version, in each of its states: it was purged.
inline constexpr std::string_view kPurged = "purged";
// Notes about packs, with the pack's id; a pack has at most one of them. kCached: may be evicted. kPromoted: was cached
// until a publish needed it.
inline constexpr std::string_view kCached = "cached";
inline constexpr std::string_view kPromoted = "promoted";
// A note about the store, with id 0: some version was ever in memory. After its removal, dead blobs of it may still be
// in unsynced packs.
inline constexpr std::string_view kMemoryUsed = "used memory";

std::string note_key(std::string_view note, std::uint64_t id);
Status put_note(Txn& txn, std::string_view note, std::uint64_t id, std::uint64_t value = 0);
Status erase_note(Txn& txn, std::string_view note, std::uint64_t id);  // no effect if there is none
Result<bool> has_note(Txn& txn, std::string_view note, std::uint64_t id);
Result<std::optional<std::uint64_t>> note_value(Txn& txn, std::string_view note, std::uint64_t id);
// Returns the first `count_max` ids from `from` on.
Result<std::vector<std::uint64_t>> noted(Txn& txn, std::string_view note, std::uint64_t from, std::size_t count_max);

inline Result<bool> is_incomplete(Txn& txn, VersionId version) {
  return has_note(txn, kIncomplete, version);
}

}  // namespace weft
