// Places of one set of arch_items in their order, read as they lie in the index: a page at a time.
#pragma once

#include <string>

#include "archindex/rows.h"

namespace weft {

// Ends before its transaction does.
class ItemPlaces {
 public:
  static Result<ItemPlaces> open(Txn& txn, std::string key);
  // The next rows (item_place_in()), at most so many, one behind the other; none at the end. Valid as long as an Entry.
  Result<Bytes> next(std::size_t count_max);

 private:
  ItemPlaces(Txn& txn, Cursor cursor, std::string key) : txn_(&txn), cursor_(std::move(cursor)), key_(std::move(key)) {}
  Status turn_page(const std::optional<Entry>& first);

  Txn* txn_;
  Cursor cursor_;
  std::string key_;
  Bytes page_;  // what is not given yet
  bool ended_ = false;
};

}  // namespace weft
