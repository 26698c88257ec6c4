#include "archindex/common.h"

#include <algorithm>
#include <optional>

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
  std::vector<std::optional<std::uint32_t>> common_of_;  // of each item of the query
  CommonItems found_;
};

}  // namespace

Bytes arch_key(const ArchItem& item) {
  return {reinterpret_cast<const char*>(item.id.bytes.data()), kArchKeyBytes};
}

Result<CommonItems> find_common_items(Txn& txn, std::span<const ArchItem> query) {
  return Walk(txn, query).run();
}

}  // namespace weft
