// Rows of the other tables of architectures (weft-store.5); class.h has the table `architectures`:
//   arch_of        version -> class
//   arch_versions  class, order -> versions, best first
//   arch_items     item, order -> the best version of each class that has the item, best first
// An order sorts by a metric in one direction, or by age if it has no metric: then the earliest version is best.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "archindex/class.h"
#include "index/tables.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

// The position of a version in an order: by rank, then by id.
struct ArchPlace {
  std::uint64_t rank = 0;
  VersionId version = 0;
  auto operator<=>(const ArchPlace&) const = default;
};
ArchPlace after(const ArchPlace& place);  // the smallest place that is greater
std::string encode_place(Bytes key, const ArchPlace& place);
Result<ArchPlace> decode_place(Txn& txn, Bytes key, Bytes value);

// A value of arch_items: a place, and the marks (marks.h) of the other items of its class.
struct ItemPlace {
  ArchPlace place;
  std::uint64_t marks = 0;
};
std::string encode_item_place(Bytes key, const ItemPlace& place);
Result<ItemPlace> decode_item_place(Txn& txn, Bytes key, Bytes value);
inline constexpr std::size_t kItemPlaceRowBytes = 28;
// True if `rows` are concatenated arch_items values of `key` with correct checksums.
bool are_item_places(Bytes key, Bytes rows);
ItemPlace item_place_in(Bytes row);
Result<bool> has_item_place(Txn& txn, Bytes key, const ArchPlace& place);
Error wrong_place(Txn& txn);
std::string least_place(const ArchPlace& place);  // sorts before the encoded place and after all lesser ones

// Returns the suffix of an order's keys, which follows the class or the item; "" without a metric.
std::string order_of(std::string_view metric, bool smallest);
std::uint64_t rank_of(double value, bool smallest);

// An order that contains a version, and the version's place in it.
struct ArchOrder {
  std::string suffix;
  ArchPlace place;
};
std::vector<ArchOrder> orders_of(const VersionRow& version);

Status put_class_of(Txn& txn, VersionId version, Bytes class_key);
Result<std::optional<std::string>> find_class_of(Txn& txn, VersionId version);
Result<std::string> need_class_of(Txn& txn, VersionId version);

// Returns the first place at `from` or later among the arch_versions of `key`.
Result<std::optional<ArchPlace>> place_from(Cursor& cursor, Txn& txn, Bytes key, const ArchPlace& from);

// Reads the values of one key of arch_items. Must be destroyed before its transaction ends.
class ItemPlaces {
 public:
  static Result<ItemPlaces> open(Txn& txn, std::string key);
  // Returns up to `count_max` further values, concatenated, for item_place_in(); empty at the end. Valid as long as an
  // Entry.
  Result<Bytes> next(std::size_t count_max);

 private:
  ItemPlaces(Txn& txn, Cursor cursor, std::string key) : txn_(&txn), cursor_(std::move(cursor)), key_(std::move(key)) {}
  Status turn_page(const std::optional<Entry>& first);

  Txn* txn_;
  Cursor cursor_;
  std::string key_;
  Bytes page_;  // values that next() has not returned yet
  bool ended_ = false;
};

}  // namespace weft
