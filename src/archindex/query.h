// The items of a query: its *common* items, the *rest* of these whose lists are not open yet, and a comparison with one
// class.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "archindex/list.h"

namespace weft {

// A query item that two or more classes have.
struct CommonItem {
  Bytes key;                  // views the query
  std::uint64_t classes = 0;  // number of classes that have it, at least 2
  std::uint32_t level = 0;    // as in levels_of()
  std::vector<std::uint32_t> inputs;
};
struct CommonItems {
  std::vector<CommonItem> items;  // inputs before the items that need them
  std::set<std::string> alone;    // keys of the classes that alone have an item whose inputs are common
  std::uint64_t looked_up = 0;
};

// Walks the query from its inputs. If one class alone has an item, the walk ends there and the class is added to
// `alone` (index.h explains why no match is lost). All other classes share common items only.
Result<CommonItems> find_common_items(Txn& txn, std::span<const ArchItem> query);

Bytes arch_key(const ArchItem& item);  // views `item`

// The common items whose lists are not open yet.
class ArchRest {
 public:
  // `common` must outlive this object, and the query must outlive the lists.
  explicit ArchRest(std::span<const CommonItem> common);
  std::size_t size() const { return items_.size(); }
  // Removes an item from the rest and returns its list: among the items that no other item of the rest needs, the one
  // in the fewest classes. The rest must not be empty.
  ArchList open(const std::string& order);

 private:
  std::vector<std::uint32_t>::iterator rarest_last();
  std::vector<AskedItem> asked_beside(std::uint32_t item) const;

  std::span<const CommonItem> common_;
  std::vector<std::uint32_t> items_;  // inputs first
};

// Hash set of the keys of a query's items, at most half full. Views the query.
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
