#include "archindex/index.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "archindex/marks.h"
#include "archindex/rows.h"

namespace weft {
namespace {

using Orders = std::vector<ArchOrder>;
using RowChange = Status (Txn::*)(Table, Bytes key, Bytes value);  // Txn::put or Txn::erase_value

// Returns the best place of a class in each order that contains one of its versions.
Result<Orders> best_places(Txn& txn, Bytes class_key) {
  Orders best;
  WEFT_TRY(Cursor cursor, txn.cursor(Table::arch_versions));
  std::string next(class_key);
  for (;;) {
    WEFT_TRY(std::optional<Entry> entry, cursor.seek(next));
    if (!entry || !entry->key.starts_with(class_key)) return best;
    std::string key(entry->key);
    WEFT_TRY(ArchPlace place, decode_place(txn, key, entry->value));
    best.push_back({key.substr(kArchKeyBytes), place});
    next = key + '\0';
  }
}

// The number of classes that have an item (2 means two or more), and the key of the class if it is one.
struct Owners {
  unsigned count = 0;
  std::string only;
};

class ClassRows {
 public:
  ClassRows(Txn& txn, std::string key, ArchClass of, Orders best)
      : txn_(txn), key_(std::move(key)), class_(std::move(of)), best_(std::move(best)), levels_(levels_of(class_)) {}

  // Adds rows for all open items of the class, and for the items of other classes that it opens.
  Status add() {
    std::vector<bool> shared(class_.size());  // by item: another class has it. An item with shared inputs only is open
    for (std::size_t item = 0; item < class_.size(); ++item) {
      if (!std::ranges::all_of(class_.inputs[item], [&](std::uint32_t input) { return shared[input]; })) continue;
      WEFT_TRY(Owners before, owners(class_.id(item)));
      WEFT_CHECK(put(item, best_));
      shared[item] = before.count > 0;
      if (before.count == 1) WEFT_CHECK(of_others(before.only, class_.id(item), std::mem_fn(&ClassRows::open_after)));
    }
    return {};
  }

  // Removes the rows from the outputs to the inputs: is_open() depends on the rows of an item's inputs.
  Status remove() {
    for (std::size_t item = class_.size(); item-- > 0;) {
      WEFT_TRY(bool open, is_open(item));
      if (!open) continue;
      WEFT_CHECK(erase(item, best_));
      WEFT_TRY(Owners left, owners(class_.id(item)));
      if (left.count == 1) WEFT_CHECK(of_others(left.only, class_.id(item), std::mem_fn(&ClassRows::close_after)));
    }
    return {};
  }

  // Reads the pages that add() will write to.
  Status foresee_add() {
    std::vector<bool> shared(class_.size());
    std::map<std::string, std::string, std::less<>> opened;  // item -> class whose row add() will insert for it
    for (std::size_t item = 0; item < class_.size(); ++item) {
      if (!std::ranges::all_of(class_.inputs[item], [&](std::uint32_t input) { return shared[input]; })) continue;
      WEFT_TRY(Owners before, owners(class_.id(item)));
      if (auto at = opened.find(class_.id(item)); before.count == 0 && at != opened.end()) before = {1, at->second};
      WEFT_CHECK(read_list(item));
      shared[item] = before.count > 0;
      if (before.count != 1) continue;
      WEFT_CHECK(of_others(before.only, class_.id(item), [&](ClassRows& other, std::size_t theirs) {
        opened.emplace(other.class_.id(theirs), other.key_);
        return other.read_list(theirs);
      }));
    }
    return {};
  }

  // Reads the pages that replace() will write to.
  Status foresee_replace() {
    for (std::size_t item = 0; item < class_.size(); ++item) {
      WEFT_TRY(bool open, is_open(item));
      if (open) WEFT_CHECK(read_list(item));
    }
    return {};
  }

  // Replaces the best versions of the class in the rows of its open items.
  Status replace(const Orders& gone, const Orders& come) {
    for (std::size_t item = 0; item < class_.size(); ++item) {
      WEFT_TRY(bool open, is_open(item));
      if (!open) continue;
      WEFT_CHECK(erase(item, gone));
      WEFT_CHECK(put(item, come));
    }
    return {};
  }

  static Result<ClassRows> read(Txn& txn, std::string key) {
    WEFT_TRY(ArchClass row, need_class(txn, key));
    WEFT_TRY(Orders best, best_places(txn, key));
    return ClassRows(txn, std::move(key), std::move(row), std::move(best));
  }

 private:
  using Visit = std::function<Status(ClassRows& other, std::size_t item)>;

  Result<Owners> owners(Bytes item) {
    Owners found;
    WEFT_TRY(Cursor cursor, txn_.cursor(Table::arch_items));
    WEFT_TRY(std::optional<Entry> first, cursor.seek_exact(item));
    if (!first) return found;
    WEFT_TRY(ItemPlace found_at, decode_item_place(txn_, item, first->value));
    WEFT_TRY(std::optional<Entry> second, cursor.next_of_key());
    found.count = second ? 2 : 1;
    if (second) return found;
    WEFT_TRY(found.only, need_class_of(txn_, found_at.place.version));
    return found;
  }

  Result<bool> is_open(std::size_t item) {
    for (std::uint32_t input : class_.inputs[item]) {
      WEFT_TRY(Cursor cursor, txn_.cursor(Table::arch_items));
      WEFT_TRY(std::optional<Entry> entry, cursor.seek_exact(class_.id(input)));
      if (!entry) return false;
      WEFT_TRY(entry, cursor.next_of_key());
      if (!entry) return false;
    }
    return true;
  }

  Status put(std::size_t item, const Orders& orders) { return change(item, orders, &Txn::put); }
  Status erase(std::size_t item, const Orders& orders) { return change(item, orders, &Txn::erase_value); }
  Status change(std::size_t item, const Orders& orders, RowChange row_change) {
    const std::uint64_t marks = marks_beside(class_, levels_, item);
    for (const ArchOrder& order : orders) {
      const std::string key = std::string(class_.id(item)) + order.suffix;
      WEFT_CHECK((txn_.*row_change)(Table::arch_items, key, encode_item_place(key, {order.place, marks})));
    }
    return {};
  }

  // Calls visit(class, item) for each item of class `other` that has `input` among its inputs.
  Status of_others(const std::string& other, Bytes input, const Visit& visit) {
    if (!other_ || other_->key_ != other) {
      WEFT_TRY(ClassRows rows, read(txn_, other));
      other_ = std::make_unique<ClassRows>(std::move(rows));
    }
    for (std::size_t item = 0; item < other_->class_.size(); ++item) {
      const auto& inputs = other_->class_.inputs[item];
      bool uses = std::ranges::any_of(inputs, [&](std::uint32_t i) { return other_->class_.id(i) == input; });
      if (uses) WEFT_CHECK(visit(*other_, item));
    }
    return {};
  }

  // Reads the pages that an insert of the item's rows will use: the first value of each key, which LMDB visits on the
  // way, and the insert position.
  Status read_list(std::size_t item) {
    WEFT_TRY(Cursor cursor, txn_.cursor(Table::arch_items));
    for (const ArchOrder& order : best_) {
      const std::string key = std::string(class_.id(item)) + order.suffix;
      WEFT_CHECK(cursor.seek_exact(key));
      WEFT_CHECK(cursor.seek_value(key, least_place(order.place)));
    }
    return {};
  }

  Status open_after(std::size_t item) {
    WEFT_TRY(bool open, is_open(item));
    return open ? put(item, best_) : Status{};
  }
  Status close_after(std::size_t item) { return erase(item, best_); }

  Txn& txn_;
  std::string key_;
  ArchClass class_;
  Orders best_;
  std::vector<std::uint32_t> levels_;
  std::unique_ptr<ClassRows> other_;  // cache of of_others(), which visits the same class for many items in a row
};

Status change_version(Txn& txn, Bytes class_key, const Orders& orders, RowChange row_change) {
  for (const ArchOrder& order : orders) {
    const std::string key = std::string(class_key) + order.suffix;
    WEFT_CHECK((txn.*row_change)(Table::arch_versions, key, encode_place(key, order.place)));
  }
  return {};
}

// Reads the pages that change_version() will write to.
Status read_versions(Txn& txn, Bytes class_key, const Orders& orders) {
  WEFT_TRY(Cursor cursor, txn.cursor(Table::arch_versions));
  for (const ArchOrder& order : orders)
    WEFT_CHECK(place_from(cursor, txn, std::string(class_key) + order.suffix, order.place));
  return {};
}

// Returns the places that change when a version with `orders` joins a class: its new best places and those they
// replace.
Orders replaced_by(const Orders& best, const Orders& orders) {
  Orders changed;
  for (const ArchOrder& order : orders) {
    auto same = std::ranges::find(best, order.suffix, &ArchOrder::suffix);
    if (same != best.end() && same->place <= order.place) continue;
    changed.push_back(order);
    if (same != best.end()) changed.push_back(*same);
  }
  return changed;
}

// Returns the entries of `a` that `b` lacks.
Orders without(const Orders& a, const Orders& b) {
  auto same = [](const ArchOrder& x, const ArchOrder& y) { return x.suffix == y.suffix && x.place == y.place; };
  Orders left;
  for (const ArchOrder& order : a)
    if (std::ranges::none_of(b, [&](const ArchOrder& other) { return same(order, other); })) left.push_back(order);
  return left;
}

Status replace_best(Txn& txn, const std::string& class_key, const Orders& before, const Orders& after) {
  Orders gone = without(before, after);
  Orders come = without(after, before);
  if (gone.empty() && come.empty()) return {};
  WEFT_TRY(ClassRows rows, ClassRows::read(txn, class_key));
  return rows.replace(gone, come);
}

}  // namespace

Status add_architecture(Txn& txn, const VersionRow& version, std::span<const ArchItem> items) {
  if (items.empty()) return {};
  ArchClass of = class_of(items);
  std::string key = class_key(of);
  Orders orders = orders_of(version);
  WEFT_TRY(bool is_known, has_class(txn, key));
  WEFT_CHECK(put_class_of(txn, version.id, key));
  if (!is_known) {
    WEFT_CHECK(put_class(txn, key, of));
    WEFT_CHECK(change_version(txn, key, orders, &Txn::put));
    return ClassRows(txn, key, std::move(of), orders).add();
  }
  WEFT_TRY(Orders before, best_places(txn, key));
  WEFT_CHECK(change_version(txn, key, orders, &Txn::put));
  WEFT_TRY(Orders after, best_places(txn, key));
  return replace_best(txn, key, before, after);
}

Status foresee_architecture(Txn& txn, const VersionRow& version, std::span<const ArchItem> items) {
  if (items.empty()) return {};
  ArchClass of = class_of(items);
  std::string key = class_key(of);
  Orders orders = orders_of(version);
  WEFT_TRY(bool is_known, has_class(txn, key));
  WEFT_CHECK(find_class_of(txn, version.id));
  WEFT_CHECK(read_versions(txn, key, orders));
  if (!is_known) return ClassRows(txn, std::move(key), std::move(of), std::move(orders)).foresee_add();
  WEFT_TRY(Orders before, best_places(txn, key));
  Orders changed = replaced_by(before, orders);
  if (changed.empty()) return {};
  return ClassRows(txn, std::move(key), std::move(of), std::move(changed)).foresee_replace();
}

Status remove_architecture(Txn& txn, const VersionRow& version) {
  WEFT_TRY(std::optional<std::string> key, find_class_of(txn, version.id));
  if (!key) return {};
  WEFT_TRY(Orders before, best_places(txn, *key));
  WEFT_CHECK(change_version(txn, *key, orders_of(version), &Txn::erase_value));
  WEFT_TRY(Orders after, best_places(txn, *key));
  if (!after.empty()) {
    WEFT_CHECK(replace_best(txn, *key, before, after));
    return txn.erase(Table::arch_of, key_of(version.id));
  }
  WEFT_TRY(ArchClass row, need_class(txn, *key));
  WEFT_CHECK(ClassRows(txn, *key, std::move(row), std::move(before)).remove());
  WEFT_CHECK(erase_class(txn, *key));
  return txn.erase(Table::arch_of, key_of(version.id));
}

}  // namespace weft
