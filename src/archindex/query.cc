#include "archindex/query.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

#include "archindex/class.h"
#include "archindex/marks.h"
#include "archindex/rows.h"

namespace weft {
namespace {

class Walk {
 public:
  Walk(Txn& txn, std::span<const ArchItem> query) : txn_(txn), query_(query), common_of_(query.size()) {}

  Result<CommonItems> run() {
    WEFT_TRY(Cursor cursor, txn_.cursor(Table::arch_items));
    for (std::size_t i = 0; i < query_.size(); ++i)
      if (inputs_are_common(i)) WEFT_CHECK(look_up(i, cursor));
    return std::move(found_);
  }

 private:
  bool inputs_are_common(std::size_t item) const {
    return std::ranges::all_of(query_[item].inputs, [&](std::uint32_t input) { return common_of_[input].has_value(); });
  }

  Status look_up(std::size_t item, Cursor& cursor) {
    Bytes key = arch_key(query_[item]);
    ++found_.looked_up;
    WEFT_TRY(std::optional<Entry> first, cursor.seek_exact(key));
    if (!first) return {};
    WEFT_TRY(ItemPlace at, decode_item_place(txn_, key, first->value));
    WEFT_TRY(std::uint64_t classes, cursor.count_of_key());
    if (classes > 1) return add(item, classes), Status{};
    WEFT_TRY(std::string only, need_class_of(txn_, at.place.version));
    found_.alone.insert(std::move(only));
    return {};
  }

  void add(std::size_t item, std::uint64_t classes) {
    CommonItem common{arch_key(query_[item]), classes, 0, {}};
    for (std::uint32_t input : query_[item].inputs) {
      common.inputs.push_back(*common_of_[input]);
      common.level = std::max(common.level, found_.items[*common_of_[input]].level + 1);
    }
    common_of_[item] = static_cast<std::uint32_t>(found_.items.size());
    found_.items.push_back(std::move(common));
  }

  Txn& txn_;
  std::span<const ArchItem> query_;
  std::vector<std::optional<std::uint32_t>> common_of_;  // by query item: index in found_.items
  CommonItems found_;
};

}  // namespace

Bytes arch_key(const ArchItem& item) {
  return {reinterpret_cast<const char*>(item.id.bytes.data()), kArchKeyBytes};
}

Result<CommonItems> find_common_items(Txn& txn, std::span<const ArchItem> query) {
  return Walk(txn, query).run();
}

ArchRest::ArchRest(std::span<const CommonItem> common) : common_(common) {
  for (std::uint32_t item = 0; item < common_.size(); ++item) items_.push_back(item);
}

ArchList ArchRest::open(const std::string& order) {
  auto rarest = rarest_last();
  const CommonItem& item = common_[*rarest];
  ArchList list(item.key, order, item.classes, asked_beside(*rarest));
  items_.erase(rarest);
  return list;
}

// Returns the item in the fewest classes among those that no other item of the rest needs.
std::vector<std::uint32_t>::iterator ArchRest::rarest_last() {
  std::vector<bool> needed(common_.size());
  for (std::uint32_t item : items_)
    for (std::uint32_t input : common_[item].inputs) needed[input] = true;
  auto rarest = items_.end();
  for (auto at = items_.begin(); at != items_.end(); ++at)
    if (!needed[*at] && (rarest == items_.end() || common_[*at].classes < common_[*rarest].classes)) rarest = at;
  return rarest;
}

// Describes each item of the rest in relation to `item`, the item of the list.
std::vector<AskedItem> ArchRest::asked_beside(std::uint32_t item) const {
  std::vector<bool> upstream(item + 1);
  upstream[item] = true;
  for (std::uint32_t i = item + 1; i-- > 0;)
    if (upstream[i])
      for (std::uint32_t input : common_[i].inputs) upstream[input] = true;
  std::vector<std::uint64_t> marks(common_.size());
  std::vector<std::uint64_t> needs(common_.size());
  std::vector<AskedItem> asked;
  asked.reserve(items_.size());
  for (std::uint32_t i : items_) {
    const bool beside = i > item || !upstream[i];
    if (beside && are_near(common_[i].level, common_[item].level)) marks[i] = mark_of(common_[i].key);
    if (asked.size() < kToldApart) needs[i] = 1ULL << asked.size();
    for (std::uint32_t input : common_[i].inputs) {
      marks[i] |= marks[input];
      needs[i] |= needs[input];
    }
    asked.push_back({common_[i].key, common_[i].classes, marks[i], needs[i], beside});
  }
  return asked;
}

WantedItems::WantedItems(std::span<const ArchItem> items) : slots_(std::bit_ceil(items.size() * 2 + 1)) {
  for (const ArchItem& item : items) slot_of(arch_key(item)) = arch_key(item);
}

// Returns the slot of the key, or the free slot for it. Ids are digests, so any of their bytes serve as a hash.
Bytes& WantedItems::slot_of(Bytes key) {
  std::uint32_t hash = 0;
  std::memcpy(&hash, key.data() + 1, sizeof hash);
  std::size_t at = hash & (slots_.size() - 1);
  while (!slots_[at].empty() && slots_[at] != key) at = (at + 1) & (slots_.size() - 1);
  return slots_[at];
}

// A shared item has a shared input one level below, so the walk ends once a whole level has no shared item.
Result<SharedItems> shared_with(Txn& txn, const WantedItems& wanted, Bytes class_key) {
  SharedItems found;
  WEFT_CHECK(each_part(txn, class_key, [&](const ArchPart& part) -> Result<bool> {
    const std::uint64_t before = found.shared;
    for (std::size_t at = 0; at < part.ids.size(); at += kArchKeyBytes)
      found.shared += wanted.has(part.ids.substr(at, kArchKeyBytes)) ? 1U : 0U;
    found.compared += part.ids.size() / kArchKeyBytes;
    return found.shared > before || part.level_last < part.level_first + 2;
  }));
  return found;
}

}  // namespace weft
