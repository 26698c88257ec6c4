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

Status visit_all(Env& env, Table table, Bytes prefix, const std::function<Status(Txn&, const Entry&)>& visit) {
  std::string from;
  do {
    WEFT_TRY(Txn txn, env.read());
    WEFT_TRY(from, visit_page(txn, table, prefix, from, [&](const Entry& entry) { return visit(txn, entry); }));
  } while (!from.empty());
  return {};
}

Result<std::vector<std::uint64_t>> all_noted(Env& env, std::string_view note) {
  std::vector<std::uint64_t> ids;
  for (;;) {
    WEFT_TRY(Txn txn, env.read());
    const std::uint64_t from = ids.empty() ? 0 : ids.back() + 1;
    WEFT_TRY(const auto more, noted(txn, note, from, limits::kRowsPerSnapshot));
    if (more.empty()) return ids;
    ids.insert(ids.end(), more.begin(), more.end());
  }
}

Result<Txn*> RenewedTxn::get(std::size_t rows) {
  if (txn_ && rows_ + rows > limits::kRowsPerSnapshot) end();
  if (!txn_) {
    WEFT_TRY(Txn txn, env_.read());
    txn_.emplace(std::move(txn));
  }
  rows_ += rows;
  return &*txn_;
}

void RenewedTxn::end() {
  txn_.reset();
  rows_ = 0;
}

}  // namespace weft
