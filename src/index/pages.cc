#include "index/pages.h"

#include "index/tables.h"

namespace weft {

Result<std::string> visit_page(Txn& txn, Table table, Bytes prefix, Bytes from,
                               const std::function<Status(const Entry&)>& visit, std::size_t rows_max) {
  WEFT_TRY(Cursor cursor, txn.cursor(table));
  WEFT_TRY(std::optional<Entry> entry, cursor.seek(from.empty() ? prefix : from));
  if (entry && !from.empty() && entry->key == from) {
    WEFT_TRY(entry, cursor.next());
  }
  std::string last;
  for (std::size_t rows = 0; entry && entry->key.starts_with(prefix); ++rows) {
    if (rows == rows_max) return last;
    WEFT_CHECK(visit(*entry));
    last = entry->key;
    WEFT_TRY(entry, cursor.next());
  }
  return std::string();
}

Result<std::unique_ptr<Txn>> read_state(Env& env) {
  WEFT_TRY(Txn txn, env.read());
  return std::make_unique<Txn>(std::move(txn));
}

Status visit_all(Env& env, Table table, Bytes prefix, const std::function<Status(Txn&, const Entry&)>& visit) {
  return walk(env, [&](const auto& txn, std::string_view from) {
    return visit_page(*txn, table, prefix, from, [&](const Entry& entry) { return visit(*txn, entry); });
  });
}

Result<std::vector<std::uint64_t>> all_noted(Env& env, std::string_view note) {
  return all_ids(
      env, [note](Txn& txn, std::uint64_t from, std::size_t count_max) { return noted(txn, note, from, count_max); });
}

}  // namespace weft
