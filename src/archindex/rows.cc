#include "archindex/rows.h"

#include <endian.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/sha256.h"
#include "base/text.h"
#include "diskformat/hash.h"

namespace weft {
namespace {

constexpr std::size_t kCheckBytes = 4;
constexpr std::size_t kPlaceBytes = 16;
constexpr std::size_t kItemPlaceBytes = kPlaceBytes + 8;
static_assert(kItemPlaceBytes + kCheckBytes == kItemPlaceRowBytes);

std::uint64_t seed_of(Bytes key) {
  return xxh3_64(std::as_bytes(std::span(key)));
}

std::string checksum(Bytes key, Bytes value) {
  return key_of(xxh3_64(std::as_bytes(std::span(value)), seed_of(key))).substr(0, kCheckBytes);
}

// Like number_at(), without a bounds check.
std::uint64_t load(const char* bytes) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes, sizeof value);
  return be64toh(value);
}

// True if the checksum after the first `bytes` bytes is correct. The value must be kCheckBytes longer than `bytes`.
bool is_checked(std::uint64_t seed, Bytes value, std::size_t bytes) {
  const std::uint64_t hash = htobe64(xxh3_64(std::as_bytes(std::span(value.substr(0, bytes))), seed));
  return std::memcmp(&hash, value.data() + bytes, kCheckBytes) == 0;
}

bool is_sealed(Bytes key, Bytes value, std::size_t bytes) {
  return value.size() == bytes + kCheckBytes && is_checked(seed_of(key), value, bytes);
}

std::string hashed(std::string_view text, std::size_t bytes) {
  return digest_key(sha256(std::as_bytes(std::span(text)))).substr(0, bytes);
}

}  // namespace

Error wrong_place(Txn& txn) {
  return damaged(txn, "a checksum of an architecture's place is wrong");
}

ArchPlace after(const ArchPlace& place) {
  return {place.rank, place.version + 1};
}

std::string least_place(const ArchPlace& place) {
  return key_of(place.rank, place.version);
}

std::string encode_place(Bytes key, const ArchPlace& place) {
  std::string value = least_place(place);
  return value + checksum(key, value);
}

Result<ArchPlace> decode_place(Txn& txn, Bytes key, Bytes value) {
  if (!is_sealed(key, value, kPlaceBytes)) return wrong_place(txn);
  return ArchPlace{load(value.data()), load(value.data() + 8)};
}

std::string encode_item_place(Bytes key, const ItemPlace& place) {
  std::string value = least_place(place.place) + key_of(place.marks);
  return value + checksum(key, value);
}

Result<ItemPlace> decode_item_place(Txn& txn, Bytes key, Bytes value) {
  if (!is_sealed(key, value, kItemPlaceBytes)) return wrong_place(txn);
  return item_place_in(value);
}

bool are_item_places(Bytes key, Bytes rows) {
  if (rows.size() % kItemPlaceRowBytes != 0) return false;
  const std::uint64_t seed = seed_of(key);
  for (; !rows.empty(); rows.remove_prefix(kItemPlaceRowBytes))
    if (!is_checked(seed, rows, kItemPlaceBytes)) return false;
  return true;
}

ItemPlace item_place_in(Bytes row) {
  return {{load(row.data()), load(row.data() + 8)}, load(row.data() + kPlaceBytes)};
}

Result<bool> has_item_place(Txn& txn, Bytes key, const ArchPlace& place) {
  WEFT_TRY(Cursor cursor, txn.cursor(Table::arch_items));
  WEFT_TRY(std::optional<Entry> entry, cursor.seek_value(key, least_place(place)));
  if (!entry) return false;
  WEFT_TRY(ItemPlace found, decode_item_place(txn, key, entry->value));
  return found.place == place;
}

std::string order_of(std::string_view metric, bool smallest) {
  constexpr std::size_t kNameBytes = 11;
  if (metric.empty()) return {};
  return (smallest ? "-" : "+") + hashed(metric, kNameBytes);
}

std::uint64_t rank_of(double value, bool smallest) {
  constexpr std::uint64_t kSign = 1ULL << 63U;
  auto bits = std::bit_cast<std::uint64_t>(value);
  std::uint64_t ascending = (bits & kSign) != 0 ? ~bits : bits | kSign;
  return smallest ? ascending : ~ascending;
}

std::vector<ArchOrder> orders_of(const VersionRow& version) {
  std::vector<ArchOrder> orders = {{"", {0, version.id}}};
  for (const auto& [name, text] : version.metrics) {
    std::optional<double> value = parse_real(text);
    if (!value) continue;
    for (bool smallest : {false, true})
      orders.push_back({order_of(name, smallest), {rank_of(*value, smallest), version.id}});
  }
  return orders;
}

Status put_class_of(Txn& txn, VersionId version, Bytes class_key) {
  std::string key = key_of(version);
  return txn.put(Table::arch_of, key, std::string(class_key) + checksum(key, class_key));
}

Result<std::optional<std::string>> find_class_of(Txn& txn, VersionId version) {
  std::string key = key_of(version);
  WEFT_TRY(std::optional<Bytes> value, txn.get(Table::arch_of, key));
  if (!value) return std::optional<std::string>();
  Bytes found = value->substr(0, kArchKeyBytes);
  if (value->size() != kArchKeyBytes + kCheckBytes || checksum(key, found) != value->substr(kArchKeyBytes))
    return damaged(txn, "a checksum of a version's architecture is wrong");
  return std::optional(std::string(found));
}

Result<std::string> need_class_of(Txn& txn, VersionId version) {
  WEFT_TRY(std::optional<std::string> found, find_class_of(txn, version));
  if (!found) return damaged(txn, "arch_of lacks a row that others name");
  return std::move(*found);
}

Result<std::optional<ArchPlace>> place_from(Cursor& cursor, Txn& txn, Bytes key, const ArchPlace& from) {
  WEFT_TRY(std::optional<Entry> entry, cursor.seek_value(key, least_place(from)));
  if (!entry) return std::optional<ArchPlace>();
  WEFT_TRY(ArchPlace place, decode_place(txn, key, entry->value));
  return std::optional(place);
}

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
