// What of a query other architectures have too.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "index/tables.h"
#include "weft/result.h"
#include "weft/version_content.h"

namespace weft {

struct CommonItem {
  Bytes key;                  // views the query
  std::uint64_t classes = 0;  // that have it: two or more
  std::uint32_t level = 0;    // of levels_of()
  std::vector<std::uint32_t> inputs;
};
struct CommonItems {
  std::vector<CommonItem> items;  // inputs before what needs them
  std::set<std::string> alone;    // keys of classes that are the only ones to have an item behind those
  std::uint64_t looked_up = 0;
};

// Walks the query's items from the inputs on. At an item that one class has the walk ends, and that class is one of
// `alone` (arch_index.h says why this finds it); no other class shares more than common items.
Result<CommonItems> find_common_items(Txn& txn, std::span<const ArchItem> query);

Bytes arch_key(const ArchItem& item);  // views it

}  // namespace weft
