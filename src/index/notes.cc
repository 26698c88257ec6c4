#include "index/notes.h"

namespace weft {

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
