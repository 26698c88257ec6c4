#include "store/arch_rows.h"

#include <algorithm>
#include <bit>

#include "base/limits.h"
#include "base/sha256.h"
#include "base/text.h"
#include "store/flat.h"
#include "store/hash.h"

namespace weft {
namespace {

constexpr std::size_t kCheckBytes = 4;
constexpr std::size_t kPlaceBytes = 16;
constexpr std::size_t kItemPlaceBytes = kPlaceBytes + 8;
constexpr std::uint32_t kMarkedLevels = 16;

std::string checksum(Bytes key, Bytes value) {
  std::uint64_t hash = xxh3_64(std::as_bytes(std::span(value)), xxh3_64(std::as_bytes(std::span(key))));
  return key_of(hash).substr(0, kCheckBytes);
}

bool is_sealed(Bytes key, Bytes value, std::size_t bytes) {
  return value.size() == bytes + kCheckBytes && checksum(key, value.substr(0, bytes)) == value.substr(bytes);
}

Error wrong_place(Txn& txn) {
  return damaged(txn, "a checksum of an architecture's place is wrong");
}

Bytes text_of(const Digest& digest) {
  return {reinterpret_cast<const char*>(digest.bytes.data()), kArchKeyBytes};
}

std::string hashed(std::string_view text, std::size_t bytes) {
  return digest_key(sha256(std::as_bytes(std::span(text)))).substr(0, bytes);
}

void append_number(std::vector<std::uint8_t>& out, std::uint32_t value) {
  for (; value >= 0x80; value >>= 7U) out.push_back(static_cast<std::uint8_t>(value | 0x80U));
  out.push_back(static_cast<std::uint8_t>(value));
}

// Reads what append_number() wrote; past the end, or for too large a number, it fails from then on.
class Numbers {
 public:
  explicit Numbers(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  bool done() const { return at_ == bytes_.size(); }
  bool failed() const { return failed_; }
  std::uint32_t next() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 35 && at_ < bytes_.size(); shift += 7) {
      std::uint8_t byte = bytes_[at_++];
      value |= std::uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80) {
        failed_ |= value > UINT32_MAX;
        return static_cast<std::uint32_t>(value);
      }
    }
    failed_ = true;
    return 0;
  }

 private:
  std::span<const std::uint8_t> bytes_;
  std::size_t at_ = 0;
  bool failed_ = false;
};

bool read_inputs(Numbers& numbers, ArchClass& into) {
  for (std::uint32_t item = 0; item < into.size(); ++item) {
    std::uint32_t count = numbers.next();
    if (count > item) return false;
    for (std::uint32_t i = 0; i < count; ++i) {
      std::uint32_t before = numbers.next();
      if (before == 0 || before > item) return false;
      into.inputs[item].push_back(item - before);
    }
  }
  return numbers.done() && !numbers.failed();
}

// The ids of a class, and where they are wanted its inputs as they are written.
Result<std::string> read_class(Txn& txn, Bytes key, std::vector<std::uint8_t>* inputs) {
  WEFT_TRY(std::optional<Bytes> value, txn.get(Table::architectures, key));
  if (!value) return damaged(txn, "architectures lacks a row that others name");
  WEFT_TRY(auto payload, open_row(txn, Table::architectures, key, *value, RecordKind::architecture));
  const auto* in = flat::root<records::ArchitectureItems>(payload);
  if (in == nullptr || in->ids() == nullptr || in->ids()->size() % kArchKeyBytes != 0 || in->inputs() == nullptr)
    return damaged(txn, "a row of architectures is none");
  if (inputs != nullptr) inputs->assign(in->inputs()->begin(), in->inputs()->end());
  return std::string(reinterpret_cast<const char*>(in->ids()->data()), in->ids()->size());
}

}  // namespace

ArchClass class_of(std::span<const ArchItem> items) {
  ArchClass made;
  for (const ArchItem& item : items) {
    made.ids += text_of(item.id);
    made.inputs.push_back(item.inputs);
  }
  return made;
}

std::string class_key(const ArchClass& of) {
  return hashed("weft-class-1" + of.ids, kArchKeyBytes);
}

Status put_class(Txn& txn, Bytes key, const ArchClass& of) {
  std::vector<std::uint8_t> inputs;
  for (std::uint32_t item = 0; item < of.size(); ++item) {
    append_number(inputs, static_cast<std::uint32_t>(of.inputs[item].size()));
    for (std::uint32_t input : of.inputs[item]) append_number(inputs, item - input);
  }
  flat::Builder builder;
  auto ids = builder.CreateVector(reinterpret_cast<const std::uint8_t*>(of.ids.data()), of.ids.size());
  auto payload = flat::finish(builder, records::CreateArchitectureItems(builder, ids, builder.CreateVector(inputs)));
  return put_row(txn, Table::architectures, key, RecordKind::architecture, payload);
}

Result<ArchClass> need_class(Txn& txn, Bytes key) {
  ArchClass row;
  std::vector<std::uint8_t> inputs;
  WEFT_TRY(row.ids, read_class(txn, key, &inputs));
  row.inputs.resize(row.ids.size() / kArchKeyBytes);
  Numbers numbers(inputs);
  if (!read_inputs(numbers, row)) return damaged(txn, "a row of architectures has impossible inputs");
  return row;
}

Result<std::string> need_class_ids(Txn& txn, Bytes key) {
  return read_class(txn, key, nullptr);
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
  return ArchPlace{number_at(value, 0), number_at(value, 8)};
}

std::vector<std::uint64_t> marks_of_items(const ArchClass& of) {
  std::vector<std::uint32_t> levels(of.size());
  std::vector<std::uint64_t> marks(of.size());
  for (std::size_t item = 0; item < of.size(); ++item) {
    for (std::uint32_t input : of.inputs[item]) levels[item] = std::max(levels[item], levels[input] + 1);
    if (levels[item] < kMarkedLevels) marks[item] = 1ULL << (static_cast<unsigned char>(of.id(item)[0]) % 64U);
  }
  return marks;
}

std::uint64_t marks_of(const ArchClass& of) {
  std::uint64_t all = 0;
  for (std::uint64_t mark : marks_of_items(of)) all |= mark;
  return all;
}

std::string encode_item_place(Bytes key, const ItemPlace& place) {
  std::string value = least_place(place.place) + key_of(place.marks);
  return value + checksum(key, value);
}

Result<ItemPlace> decode_item_place(Txn& txn, Bytes key, Bytes value) {
  if (!is_sealed(key, value, kItemPlaceBytes)) return wrong_place(txn);
  return ItemPlace{{number_at(value, 0), number_at(value, 8)}, number_at(value, 16)};
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

Result<std::optional<ItemPlace>> item_place_from(Cursor& cursor, Txn& txn, Bytes key, const ArchPlace& from) {
  WEFT_TRY(std::optional<Entry> entry, cursor.seek_value(key, least_place(from)));
  if (!entry) return std::optional<ItemPlace>();
  WEFT_TRY(ItemPlace place, decode_item_place(txn, key, entry->value));
  return std::optional(place);
}

}  // namespace weft
