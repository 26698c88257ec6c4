#include "store/arch_join.h"

namespace weft {

Result<ArchJoin> ArchJoin::make(Txn& txn, const std::vector<Bytes>& items, const std::string& order) {
  ArchJoin join(txn);
  join.lists_.reserve(items.size());
  for (Bytes item : items) {
    WEFT_TRY(Cursor cursor, txn.cursor(Table::arch_items));
    join.lists_.push_back({std::string(item) + order, std::move(cursor)});
  }
  return join;
}

Result<std::optional<ArchPlace>> ArchJoin::next(const ArchPlace& from) {
  ArchPlace at = from;
  std::size_t agreed = 0;
  for (std::size_t list = 0; agreed < lists_.size(); list = (list + 1) % lists_.size()) {
    WEFT_TRY(std::optional<ArchPlace> place, place_from(lists_[list].cursor, txn_, lists_[list].key, at));
    if (!place) return std::optional<ArchPlace>();
    agreed = *place == at && agreed > 0 ? agreed + 1 : 1;
    at = *place;
  }
  return std::optional(at);
}

}  // namespace weft
