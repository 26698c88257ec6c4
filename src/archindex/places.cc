#include "archindex/places.h"

namespace weft {

Result<ItemPlaces> ItemPlaces::open(Txn& txn, std::string key) {
  WEFT_TRY(Cursor cursor, txn.cursor(Table::arch_items));
  ItemPlaces places(txn, std::move(cursor), std::move(key));
  WEFT_TRY(std::optional<Entry> first, places.cursor_.seek_exact(places.key_));
  WEFT_CHECK(places.turn_page(first));
  return places;
}

Result<Bytes> ItemPlaces::next(std::size_t count_max) {
  if (page_.empty() && !ended_) {
    WEFT_TRY(std::optional<Entry> first, cursor_.next_of_key());
    WEFT_CHECK(turn_page(first));
  }
  const Bytes rows = page_.substr(0, count_max * kItemPlaceRowBytes);
  if (!are_item_places(key_, rows)) return wrong_place(*txn_);
  page_.remove_prefix(rows.size());
  return rows;
}

Status ItemPlaces::turn_page(const std::optional<Entry>& first) {
  ended_ = !first;
  if (ended_) return {};
  WEFT_TRY(page_, cursor_.rest_of_page());
  if (page_.empty()) page_ = first->value;
  return {};
}

}  // namespace weft
