// Places of one set of arch_items in their order, read as they lie in the index: a page at a time.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "store/arch_rows.h"

namespace weft {

// Ends before its transaction does.
class ItemPlaces {
 public:
  static Result<ItemPlaces> open(Txn& txn, std::string key);
  // The next, at most so many; fewer only where they end. Valid until the next call.
  Result<std::span<const ItemPlace>> next(std::size_t count_max);

 private:
  ItemPlaces(Txn& txn, Cursor cursor, std::string key) : txn_(&txn), cursor_(std::move(cursor)), key_(std::move(key)) {}
  Status turn_page(const std::optional<Entry>& first);

  Txn* txn_;
  Cursor cursor_;
  std::string key_;
  Bytes page_;  // what is not decoded yet
  bool ended_ = false;
  std::vector<ItemPlace> places_;
};

}  // namespace weft
