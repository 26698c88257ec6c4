// The items of a query, and how many of them a class has.
#pragma once

#include <span>
#include <vector>

#include "index/tables.h"
#include "weft/result.h"
#include "weft/version_content.h"

namespace weft {

// The keys of a query's items, half of its slots in use. Views the query.
class WantedItems {
 public:
  explicit WantedItems(std::span<const ArchItem> items);
  bool has(Bytes key) const { return !const_cast<WantedItems*>(this)->slot_of(key).empty(); }

 private:
  Bytes& slot_of(Bytes key);

  std::vector<Bytes> slots_;
};

struct SharedItems {
  std::uint64_t shared = 0;
  std::uint64_t compared = 0;
};
Result<SharedItems> shared_with(Txn& txn, const WantedItems& wanted, Bytes class_key);

}  // namespace weft
