// Walks of tables that have more rows than one transaction may read (limits::kRowsPerSnapshot).
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

// Calls visit(entry) for the first `rows_max` entries whose keys begin with `prefix`, behind the key `from`; "": from
// the first. Returns the last key that was visited, and "" where no entry follows it. Not for tables that keep sets.
Result<std::string> visit_page(Txn& txn, Table table, Bytes prefix, Bytes from,
                               const std::function<Status(const Entry&)>& visit,
                               std::size_t rows_max = limits::kRowsPerSnapshot);

// All of these entries, in as many transactions as it takes. An entry that comes or goes meanwhile may be visited.
Status visit_all(Env& env, Table table, Bytes prefix, const std::function<Status(Txn&, const Entry&)>& visit);

// All ids of a note, in as many transactions as it takes.
Result<std::vector<std::uint64_t>> all_noted(Env& env, std::string_view note);

// A read transaction for a walk of many single lookups, as Renewed is a snapshot. One thread.
class RenewedTxn {
 public:
  explicit RenewedTxn(Env& env) : env_(env) {}
  // One in which the caller reads at most so many rows; it is good until the next call.
  Result<Txn*> get(std::size_t rows = 1);
  void end();

 private:
  Env& env_;
  std::optional<Txn> txn_;
  std::size_t rows_ = 0;
};

}  // namespace weft
