// Walks tables with more rows than one transaction may read (limits::kRowsPerSnapshot).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "diskformat/keys.h"
#include "index/env.h"
#include "weft/result.h"
#include "weft/snapshot.h"

namespace weft {

// Calls visit(entry) for the first `rows_max` entries with keys that begin with `prefix` and come after the key `from`
// ("" starts at the first). Returns the last visited key, or "" if no entry follows it. Not for tables that keep sets.
Result<std::string> visit_page(Txn& txn, Table table, Bytes prefix, Bytes from,
                               const std::function<Status(const Entry&)>& visit,
                               std::size_t rows_max = limits::kRowsPerSnapshot);

// Calls visit(txn, entry) for all entries with this prefix, in several transactions. Entries that are added or erased
// meanwhile may or may not be visited.
Status visit_all(Env& env, Table table, Bytes prefix, const std::function<Status(Txn&, const Entry&)>& visit);

// Returns all ids of a note, read in several transactions.
Result<std::vector<std::uint64_t>> all_noted(Env& env, std::string_view note);

// A read transaction for a walk of many single lookups; the counterpart of Renewed. One thread.
class RenewedTxn {
 public:
  explicit RenewedTxn(Env& env) : env_(env) {}
  // Returns a transaction for reading at most `rows` rows. It is valid until the next call.
  Result<Txn*> get(std::size_t rows = 1);
  void end();

 private:
  Env& env_;
  std::optional<Txn> txn_;
  std::size_t rows_ = 0;
};

}  // namespace weft
