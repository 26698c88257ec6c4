// Exact top-K by best-first search.
//
// The query's items are first walked from their inputs on. Those that two classes or more have are *common*; at one
// that a single class has the walk ends, and that class is compared as a whole (arch_index.h says why this finds it).
// Every other class shares with the query a set of common items that is closed upstream. The search goes through such
// sets, largest first, as pairs (all, must): classes that have all of `must` and no common item outside of `all`. Such
// a pair is split at one of the last items of `all`: with it, or without it. Where `must` has every last item, its
// classes have all of `all`; one that has more has come out before, since larger bounds come first, so the rest share
// exactly `all`, and come out of the index in the order of the metric. So the first `top` versions to come out are the
// best.
//
// Where a query and many classes have branches in common that hardly ever come together, there are too many such sets:
// after so many steps, rows of items that splits asked for, the classes of all common items are counted instead.
#include "store/arch_match.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "base/text.h"
#include "store/arch_join.h"
#include "store/arch_rows.h"

namespace weft {
namespace {

using Set = std::vector<bool>;  // of common items

// One place further on: ids are unique in an order, so nothing is passed over.
ArchPlace after(ArchPlace place) {
  ++place.version;
  return place;
}

// Versions with the metric come first, then those without.
struct Rank {
  bool without_metric = false;
  ArchPlace place;
  auto operator<=>(const Rank&) const = default;
};

// What is left to look at: the versions of one class from `from` on, or classes between `must` and `all`.
struct Open {
  std::uint64_t bound = 0;
  Rank from;
  std::string class_key;  // "" for a pair of sets
  Set all;
  std::vector<std::uint32_t> must;
};

struct Worse {
  bool operator()(const Open& a, const Open& b) const {
    return a.bound != b.bound ? a.bound < b.bound : a.from > b.from;
  }
};

class Matcher {
 public:
  Matcher(Txn& txn, const MatchQuery& query, std::uint64_t steps_max)
      : txn_(txn), query_(query), order_(order_of(query.metric, query.smallest)), steps_left_(steps_max) {}

  Result<std::vector<MatchHit>> run() {
    WEFT_CHECK(walk());
    for (const std::string& only : alone_) WEFT_CHECK(add_alone(only));
    if (!common_.empty()) queue_.push({common_.size(), first_rank(), {}, Set(common_.size(), true), {}});
    while (hits_.size() < query_.top) {
      WEFT_CHECK(add_counted());
      if (queue_.empty()) break;
      Open next = queue_.top();
      queue_.pop();
      WEFT_CHECK(next.class_key.empty() ? look_into(std::move(next)) : give_version(std::move(next)));
    }
    return std::move(hits_);
  }

 private:
  Rank first_rank() const { return {order_.empty(), {}}; }

  static Bytes key_of_item(const ArchItem& item) {
    return {reinterpret_cast<const char*>(item.id.bytes.data()), kArchKeyBytes};
  }

  // Finds the common items and the classes that stand alone behind them.
  Status walk() {
    std::vector<std::optional<std::uint32_t>> common_of(query_.items.size());
    const std::vector<std::uint64_t> marks = marks_of_items(class_of(query_.items));
    WEFT_TRY(Cursor cursor, txn_.cursor(Table::arch_items));
    for (std::size_t i = 0; i < query_.items.size(); ++i) {
      const ArchItem& item = query_.items[i];
      wanted_.insert(key_of_item(item));
      if (!std::ranges::all_of(item.inputs, [&](std::uint32_t input) { return common_of[input].has_value(); }))
        continue;
      WEFT_TRY(std::optional<Entry> first, cursor.seek_exact(key_of_item(item)));
      if (!first) continue;
      WEFT_TRY(ItemPlace at, decode_item_place(txn_, key_of_item(item), first->value));
      WEFT_TRY(std::uint64_t classes, cursor.count_of_key());
      if (classes == 1) {
        WEFT_TRY(std::string only, need_class_of(txn_, at.place.version));
        alone_.insert(std::move(only));
        continue;
      }
      common_of[i] = static_cast<std::uint32_t>(common_.size());
      common_.push_back({key_of_item(item), marks[i], classes});
      auto& inputs = common_inputs_.emplace_back();
      for (std::uint32_t input : item.inputs) inputs.push_back(*common_of[input]);
    }
    return {};
  }

  Status add_alone(const std::string& key) {
    WEFT_TRY(ArchClass row, need_class(txn_, key));
    std::uint64_t shared = 0;
    for (std::size_t item = 0; item < row.size(); ++item) shared += wanted_.count(row.id(item));
    return add_class(key, shared);
  }

  Status add_class(const std::string& key, std::uint64_t shared) {
    seen_.insert(key);
    return push_version({shared, first_rank(), key, {}, {}});
  }

  // The class again, at its next version from `next.from` on.
  Status push_version(Open next) {
    WEFT_TRY(Cursor cursor, txn_.cursor(Table::arch_versions));
    if (!next.from.without_metric) {
      WEFT_TRY(auto place, place_from(cursor, txn_, next.class_key + order_, next.from.place));
      if (place) return push_at(std::move(next), {false, *place});
      next.from = {true, {}};
    }
    for (ArchPlace from = next.from.place;; from = after(from)) {
      WEFT_TRY(auto place, place_from(cursor, txn_, next.class_key, from));
      if (!place) return {};
      from = *place;
      WEFT_TRY(bool elsewhere, has_metric(place->version));
      if (!elsewhere) return push_at(std::move(next), {true, *place});
    }
  }

  Status push_at(Open open, const Rank& from) {
    open.from = from;
    queue_.push(std::move(open));
    return {};
  }

  Result<bool> has_metric(VersionId id) {
    if (query_.metric.empty()) return false;
    WEFT_TRY(VersionRow version, need_row<VersionRow>(txn_, Table::versions, key_of(id)));
    return std::ranges::any_of(version.metrics, [&](const auto& metric) {
      return metric.first == query_.metric && parse_real(metric.second).has_value();
    });
  }

  Status give_version(Open open) {
    VersionId version = open.from.place.version;
    if (version != query_.except) hits_.push_back({version, open.bound});
    if (hits_.size() == query_.top) return {};
    open.from.place = after(open.from.place);
    return push_version(std::move(open));
  }

  // The items of a set that no other of it needs.
  std::vector<std::uint32_t> last_of(const Set& all) const {
    Set needed(all.size());
    for (std::size_t i = 0; i < all.size(); ++i)
      if (all[i])
        for (std::uint32_t input : common_inputs_[i]) needed[input] = true;
    std::vector<std::uint32_t> last;
    for (std::uint32_t i = 0; i < all.size(); ++i)
      if (all[i] && !needed[i]) last.push_back(i);
    return last;
  }

  Status look_into(Open open) {
    for (std::uint32_t item : last_of(open.all))
      if (std::ranges::find(open.must, item) == open.must.end())
        return steps_left_ == 0 ? count_all() : split(std::move(open), item);
    return give_class(std::move(open));
  }

  Status split(Open open, std::uint32_t item) {
    Open without = open;
    without.all[item] = false;
    if (--without.bound > 0) queue_.push(std::move(without));
    open.must.push_back(item);
    steps_left_ -= std::min<std::uint64_t>(steps_left_, open.must.size());
    WEFT_TRY(ArchJoin join, join_of(open.must, ""));
    WEFT_TRY(auto any, join.next({}));
    if (any) queue_.push(std::move(open));
    return {};
  }

  Result<ArchJoin> join_of(const std::vector<std::uint32_t>& must, const std::string& order) {
    std::vector<JoinItem> items;
    items.reserve(must.size());
    for (std::uint32_t item : must) items.push_back(common_[item]);
    return ArchJoin::make(txn_, std::move(items), order);
  }

  // The best class of those that share exactly `all`, and the pair again from there on. Without the metric, those that
  // have it were seen in its own order.
  Status give_class(Open open) {
    const std::string& order = open.from.without_metric ? kNoOrder : order_;
    WEFT_TRY(ArchJoin join, join_of(open.must, order));
    for (;;) {
      WEFT_TRY(auto place, join.next(open.from.place));
      if (!place && open.from.without_metric) return {};
      if (!place) return push_at(std::move(open), {true, {}});
      WEFT_TRY(std::string key, need_class_of(txn_, place->version));
      open.from.place = after(*place);
      if (seen_.contains(key)) continue;
      WEFT_CHECK(add_class(key, open.bound));
      return push_at(open, open.from);
    }
  }

  // In place of all pairs: how many common items each class has. One version stands for a class, the same in all rows.
  Status count_all() {
    std::vector<Open> classes;
    for (; !queue_.empty(); queue_.pop())
      if (!queue_.top().class_key.empty()) classes.push_back(queue_.top());
    for (Open& open : classes) queue_.push(std::move(open));
    std::unordered_map<VersionId, std::uint64_t> shared;
    WEFT_TRY(Cursor cursor, txn_.cursor(Table::arch_items));
    for (const JoinItem& item : common_) {
      WEFT_TRY(std::optional<Entry> entry, cursor.seek_exact(item.key));
      while (entry) {
        WEFT_TRY(ItemPlace at, decode_item_place(txn_, item.key, entry->value));
        ++shared[at.place.version];
        WEFT_TRY(entry, cursor.next_of_key());
      }
    }
    counted_.assign(shared.begin(), shared.end());
    std::ranges::sort(counted_, std::greater(), &std::pair<VersionId, std::uint64_t>::second);
    return {};
  }

  // The counted classes that may come next.
  Status add_counted() {
    for (; next_counted_ < counted_.size(); ++next_counted_) {
      const auto& [version, shared] = counted_[next_counted_];
      if (!queue_.empty() && queue_.top().bound > shared) return {};
      WEFT_TRY(std::string key, need_class_of(txn_, version));
      if (!seen_.contains(key)) WEFT_CHECK(add_class(key, shared));
    }
    return {};
  }

  static inline const std::string kNoOrder;

  Txn& txn_;
  const MatchQuery& query_;
  const std::string order_;
  std::unordered_set<Bytes> wanted_;  // views the query
  std::vector<JoinItem> common_;
  std::vector<std::vector<std::uint32_t>> common_inputs_;
  std::unordered_set<std::string> alone_;
  std::unordered_set<std::string> seen_;
  std::priority_queue<Open, std::vector<Open>, Worse> queue_;
  std::vector<MatchHit> hits_;
  std::uint64_t steps_left_;
  std::vector<std::pair<VersionId, std::uint64_t>> counted_;  // versions and what their classes share, most first
  std::size_t next_counted_ = 0;
};

}  // namespace

Result<std::vector<MatchHit>> match_architectures(Txn& txn, const MatchQuery& query, std::uint64_t steps_max) {
  return Matcher(txn, query, steps_max).run();
}

}  // namespace weft
