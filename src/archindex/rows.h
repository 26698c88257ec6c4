// Rows of the tables of architectures (weft-store.5) beside that of classes:
//   arch_of        version -> class
//   arch_versions  class, order -> versions, best first
//   arch_items     item, order -> the best version of each class that has the item, best first
// An order is a metric with a sign, or none: then the earliest version is best.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "archindex/class.h"
#include "index/tables.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

// Where a version stands in an order: by rank, then by id.
struct ArchPlace {
  std::uint64_t rank = 0;
  VersionId version = 0;
  auto operator<=>(const ArchPlace&) const = default;
};
ArchPlace after(const ArchPlace& place);  // ids are unique in an order: no other place is between
std::string encode_place(Bytes key, const ArchPlace& place);
Result<ArchPlace> decode_place(Txn& txn, Bytes key, Bytes value);

// In arch_items a place comes with marks (marks.h) of what else its class has.
struct ItemPlace {
  ArchPlace place;
  std::uint64_t marks = 0;
};
std::string encode_item_place(Bytes key, const ItemPlace& place);
Result<ItemPlace> decode_item_place(Txn& txn, Bytes key, Bytes value);
inline constexpr std::size_t kItemPlaceRowBytes = 28;
// Of values one behind the other.
bool are_item_places(Bytes key, Bytes rows);
ItemPlace item_place_in(Bytes row);
Result<bool> has_item_place(Txn& txn, Bytes key, const ArchPlace& place);
Error wrong_place(Txn& txn);
std::string least_place(const ArchPlace& place);  // sorts before the encoded place, and after those that are less

// What follows a class or an item in the keys of an order; "" for none.
std::string order_of(std::string_view metric, bool smallest);
std::uint64_t rank_of(double value, bool smallest);

// All orders of a version, with its place in each.
struct ArchOrder {
  std::string suffix;
  ArchPlace place;
};
std::vector<ArchOrder> orders_of(const VersionRow& version);

Status put_class_of(Txn& txn, VersionId version, Bytes class_key);
Result<std::optional<std::string>> find_class_of(Txn& txn, VersionId version);
Result<std::string> need_class_of(Txn& txn, VersionId version);

// The first place of a set of arch_versions that is not before `from`.
Result<std::optional<ArchPlace>> place_from(Cursor& cursor, Txn& txn, Bytes key, const ArchPlace& from);

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
