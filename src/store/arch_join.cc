#include "store/arch_join.h"

#include <algorithm>

namespace weft {

Result<ArchJoin> ArchJoin::make(Txn& txn, std::vector<JoinItem> items, const std::string& order) {
  ArchJoin join(txn);
  join.lists_.reserve(items.size());
  std::ranges::stable_sort(items, {}, &JoinItem::classes);
  for (const JoinItem& item : items) {
    WEFT_TRY(Cursor cursor, txn.cursor(Table::arch_items));
    join.lists_.push_back({std::string(item.key) + order, std::move(cursor)});
    join.marks_ |= item.mark;
  }
  return join;
}

Result<std::optional<ArchPlace>> ArchJoin::next(const ArchPlace& from) {
  for (ArchPlace at = from;;) {
    WEFT_TRY(std::optional<ArchPlace> found, candidate(at));
    if (!found) return found;
    at = *found;
    for (std::size_t list = 1; list < lists_.size() && at == *found; ++list) {
      WEFT_TRY(std::optional<ArchPlace> place, at_or_after(lists_[list], at));
      if (!place) return place;
      at = *place;
    }
    if (at == *found) return found;
  }
}

Result<std::optional<ArchPlace>> ArchJoin::candidate(const ArchPlace& from) {
  List& list = lists_.front();
  WEFT_TRY(std::optional<ItemPlace> at, item_place_from(list.cursor, txn_, list.key, from));
  while (at && (at->marks & marks_) != marks_) {
    WEFT_TRY(std::optional<Entry> entry, list.cursor.next_of_key());
    if (!entry) return std::optional<ArchPlace>();
    WEFT_TRY(at, decode_item_place(txn_, list.key, entry->value));
  }
  return at ? std::optional(at->place) : std::nullopt;
}

Result<std::optional<ArchPlace>> ArchJoin::at_or_after(List& list, const ArchPlace& from) {
  WEFT_TRY(std::optional<ItemPlace> at, item_place_from(list.cursor, txn_, list.key, from));
  return at ? std::optional(at->place) : std::nullopt;
}

}  // namespace weft
