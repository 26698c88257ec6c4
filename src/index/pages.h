// Walks tables with more rows than one transaction may read (limits::kRowsPerSnapshot).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "diskformat/keys.h"
#include "index/env.h"
#include "weft/result.h"
#include "weft/store/snapshot.h"
#include "weft/store/walk.h"

namespace weft {

// Calls visit(entry) for the first `rows_max` entries with keys that begin with `prefix` and come after the key `from`
// ("" starts at the first). Returns the last visited key, or "" if no entry follows it. Not for tables that keep sets.
Result<std::string> visit_page(Txn& txn, Table table, Bytes prefix, Bytes from,
                               const std::function<Status(const Entry&)>& visit,
                               std::size_t rows_max = limits::kRowsPerSnapshot);

// Begins a walk's transaction (weft/store/walk.h).
Result<std::unique_ptr<Txn>> read_state(Env& env);
using RenewedTxn = RenewedState<Env>;

// Calls visit(txn, entry) for all entries with this prefix, in several transactions. Entries that are added or erased
// meanwhile may or may not be visited.
Status visit_all(Env& env, Table table, Bytes prefix, const std::function<Status(Txn&, const Entry&)>& visit);

// Returns all ids of a note, read in several transactions.
Result<std::vector<std::uint64_t>> all_noted(Env& env, std::string_view note);

}  // namespace weft
