// The items of a query: which of them a class has, which of them other architectures have too, and of these the rest
// whose lists are not open yet.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "archindex/list.h"
#include "index/tables.h"
#include "weft/store_rows.h"

namespace weft {

// An item that two classes or more have.
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
// `alone` (index.h says why this finds it); no other class shares more than common items.
Result<CommonItems> find_common_items(Txn& txn, std::span<const ArchItem> query);

Bytes arch_key(const ArchItem& item);  // views it

// The common items whose lists are not open yet.
class ArchRest {
 public:
  // Views the items; those of a list view the query.
  explicit ArchRest(std::span<const CommonItem> common);
  std::size_t size() const { return items_.size(); }
  // Takes away that which fewest classes have of those that no other of the rest needs. There must be one.
  ArchList open(const std::string& order);

 private:
  std::vector<std::uint32_t>::iterator rarest_last();
  std::vector<AskedItem> asked_beside(std::uint32_t item) const;

  std::span<const CommonItem> common_;
  std::vector<std::uint32_t> items_;  // inputs first
};

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
