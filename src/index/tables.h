// Typed access to the index: rows in and out of a transaction, each checked against its checksum, table and key.
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

// "STORE/index/data.mdb: WHAT; run `weft fsck --rebuild`"
Error damaged(Txn& txn, std::string_view what);

Result<std::vector<std::byte>> open_row(Txn& txn, Table table, Bytes key, Bytes value, RecordKind kind);
Status put_row(Txn& txn, Table table, Bytes key, RecordKind kind, std::span<const std::byte> payload);

template <class Row>
Result<Row> row_from(Txn& txn, Table table, Bytes key, Bytes value) {
  WEFT_TRY(std::vector<std::byte> payload, open_row(txn, table, key, value, record_kind_of<Row>()));
  return decode_row<Row>(payload, table_name(table));
}

template <class Row>
Result<std::optional<Row>> find_row(Txn& txn, Table table, Bytes key) {
  WEFT_TRY(std::optional<Bytes> value, txn.get(table, key));
  if (!value) return std::optional<Row>();
  WEFT_TRY(Row row, row_from<Row>(txn, table, key, *value));
  return std::optional<Row>(std::move(row));
}

// A row that another row promises: its absence is damage.
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

// Calls visit(entry) for all entries whose keys begin with `prefix`, in order, until it returns an error.
Status each_entry(Txn& txn, Table table, Bytes prefix, const std::function<Status(const Entry&)>& visit);

Result<Counters> get_counters(Txn& txn);
Status put_counters(Txn& txn, const Counters& counters);

Result<std::optional<InodeRow>> find_inode(Txn& txn, Ino ino);
Result<std::optional<VersionRow>> find_version(Txn& txn, ModelId model, std::uint64_t number);
Result<std::optional<ModelRow>> find_model(Txn& txn, std::string_view name);

// What is noted of single versions, in `meta`: the key of a note is its name and the version's id.
// Live and bare, or a rebuild could not read its content: it has no holders, so gc must not judge by them.
inline constexpr std::string_view kIncomplete = "incomplete";
inline constexpr std::string_view kUnsaved = "unsaved";  // published here, and not at the origin yet
inline constexpr std::string_view kPinned = "pinned";
inline constexpr std::string_view kInMemory = "memory";  // VersionNote::in_memory
// Of id 0: some version was. Dead blobs of it may lie in packs that are not on the disk, after it is removed.
inline constexpr std::string_view kMemoryUsed = "used memory";
inline constexpr std::string_view kUnreaped = "unreaped";  // removed, and gc has not given its content back yet
// Removed, and it is still a holder of what it held; the value says how much of that is given back (giving_back.h).
inline constexpr std::string_view kGivingBack = "giving";
// A publish has it under way (catalog/taking.h); the value says how many steps it has taken.
inline constexpr std::string_view kTaking = "taking";
// Not of versions, of packs: it is cached; it was, until a publish needed it.
inline constexpr std::string_view kCached = "cached";
inline constexpr std::string_view kPromoted = "promoted";

std::string note_key(std::string_view note, std::uint64_t id);
Status put_note(Txn& txn, std::string_view note, std::uint64_t id);
Status erase_note(Txn& txn, std::string_view note, std::uint64_t id);  // fine when it is not there
Result<bool> has_note(Txn& txn, std::string_view note, std::uint64_t id);
// The first `count_max` ids from `from` on.
Result<std::vector<std::uint64_t>> noted(Txn& txn, std::string_view note, std::uint64_t from, std::size_t count_max);

inline Result<bool> is_incomplete(Txn& txn, VersionId version) {
  return has_note(txn, kIncomplete, version);
}

}  // namespace weft
