// Exact top-K by best-first search.
//
// A class that alone has an item of the query (query.h) is compared as a whole. Every other class shares with the query
// a set of common items that is closed upstream. The search opens the lists of these items one by one: among the items
// that no other item of the *rest* needs, it takes the one in the fewest classes. The item then leaves the rest, so a
// class in no opened list shares at most the items of the rest. The search ends once the best versions found share more
// items than the rest holds. Items with a large upstream are in few classes and are opened first, so long lists are
// seldom opened.
//
// A list is read some rows at a time, in the order of the metric (list.h). The marks of a row give an upper bound: its
// class can share only those items of the rest whose marks are all set. The class itself is compared only if the bound
// may make it the best. So each row is read at most once, even where branches of the graph merge. A mark may be set by
// another item: the first classes are compared on trust, for later rows some of the items that the class seems to have
// are looked up first.
//
// If the marks exclude little, too many classes would be compared: after `steps_max` steps all classes of all common
// items are counted instead.
#include "archindex/match.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "archindex/query.h"
#include "base/text.h"

namespace weft {
namespace {

constexpr std::uint64_t kItemsOfAStep = 64;  // items compared per step
constexpr std::uint64_t kRowsOfAStep = 128;
constexpr std::uint64_t kRankedOnTrust = 2;  // classes compared before lookups for rows begin
constexpr unsigned kAskedOfARow = 2;         // lookups without effect on a row's bound before its class is compared

// An entry of the queue: an open part of the search. Its classes share at most `bound` items; versions that share
// exactly `bound` rank at `from` or later.
struct Open {
  enum class What : std::uint8_t { rest, list, row, doubted, found };
  std::uint64_t bound = 0;
  ArchRank from;
  What what = What::rest;
  std::size_t which = 0;  // index into lists_ (list and row), doubted_ or found_
};

// A row in doubt: its class is compared only if it still seems to be the best after some lookups.
struct Doubted {
  std::size_t list = 0;
  std::uint64_t bound = 0;
  ListedRow row;
};

struct Worse {
  bool operator()(const Open& a, const Open& b) const {
    return a.bound != b.bound ? a.bound < b.bound : a.from > b.from;
  }
};

class Matcher {
 public:
  Matcher(Txn& txn, const MatchQuery& query, std::uint64_t steps_max)
      : txn_(txn),
        query_(query),
        order_(order_of(query.metric, query.smallest)),
        wanted_(query.items),
        steps_left_(steps_max) {}

  const MatchWork& work() const { return work_; }

  Result<std::vector<MatchHit>> run() {
    WEFT_TRY(CommonItems found, find_common_items(txn_, query_.items));
    work_.items = found.looked_up;
    common_ = std::move(found.items);
    for (const std::string& only : found.alone) WEFT_CHECK(add_class(only));
    rest_ = ArchRest(common_);
    push_rest();
    while (hits_.size() < query_.top) {
      if (steps_left_ == 0 && !counts_) WEFT_CHECK(count_all());
      WEFT_CHECK(add_counted());
      if (queue_.empty()) break;
      Open next = queue_.top();
      queue_.pop();
      WEFT_CHECK(read_more(next));
    }
    return std::move(hits_);
  }

 private:
  ArchRank first_rank() const { return {order_.empty(), {}}; }

  Status read_more(const Open& next) {
    switch (next.what) {
      case Open::What::rest:
        return open_list(), Status{};
      case Open::What::list:
        return read_list(next);
      case Open::What::row:
        return take_row(next);
      case Open::What::doubted:
        return doubt(next.which);
      case Open::What::found:
        return give_version(next);
    }
    return {};
  }

  void push_rest() {
    if (rest_.size() > 0) queue_.push({rest_.size(), first_rank(), Open::What::rest, 0});
  }

  void open_list() {
    take_steps(1 + rest_.size() / kItemsOfAStep);
    const std::uint64_t bound = rest_.size();
    lists_.push_back(rest_.open(order_));
    push_list(bound, lists_.size() - 1);
    push_rest();
  }

  void push_list(std::uint64_t bound, std::size_t which) {
    if (lists_[which].next()) queue_.push({bound, *lists_[which].next(), Open::What::list, which});
  }
  void push_row(std::size_t list, const ArchList::Head& head) {
    queue_.push({head.bound, head.rank, Open::What::row, list});
  }

  Status read_list(const Open& open) {
    heads_.clear();
    WEFT_TRY(std::uint64_t rows, lists_[open.which].read(txn_, heads_));
    for (const ArchList::Head& head : heads_) push_row(open.which, head);
    push_list(open.bound, open.which);
    work_.places += rows;
    take_steps(1 + rows / kRowsOfAStep);
    return {};
  }

  void take_steps(std::uint64_t steps) { steps_left_ -= std::min(steps_left_, steps); }

  Status take_row(const Open& open) {
    std::optional<ArchList::Head> next;
    const ListedRow row = lists_[open.which].take_first(open.bound, next);
    if (next) push_row(open.which, *next);
    if (work_.classes < kRankedOnTrust) return rank_class(row.rank);
    doubted_.push_back({open.which, open.bound, row});
    return doubt(doubted_.size() - 1);
  }

  // Looks up some items of the row's class, which is cheaper than to compare the class. A class with the metric has two
  // rows in a list, one in the metric's order and a plain one. Equal lookups give both rows equal bounds, so the plain
  // row stays behind the other in the queue.
  Status doubt(std::size_t which) {
    Doubted& doubted = doubted_[which];
    if (ranked_.contains(doubted.row.rank.place.version)) return {};
    for (unsigned times = 0; times < kAskedOfARow; ++times) {
      WEFT_TRY(std::optional<std::uint64_t> bound, lists_[doubted.list].ask(txn_, doubted.row));
      if (!bound) break;
      ++work_.asked;
      take_steps(1);
      if (*bound == doubted.bound) continue;
      doubted.bound = *bound;
      queue_.push({*bound, doubted.row.rank, Open::What::doubted, which});
      return {};
    }
    return rank_class(doubted.row.rank);
  }

  // Compares the class of a row, once per class. The row names the best version of its class: the plain
  // row of a class with the metric comes after its row in the metric's order, where the class was compared.
  Status rank_class(const ArchRank& rank) {
    if (!ranked_.insert(rank.place.version).second) return {};
    WEFT_TRY(std::string key, need_class_of(txn_, rank.place.version));
    if (seen_.contains(key)) return {};
    WEFT_TRY(std::uint64_t shared, shared_with(key));
    queue_.push({shared, rank, Open::What::found, found(std::move(key))});
    return {};
  }

  Result<std::uint64_t> shared_with(const std::string& class_key) {
    ++work_.classes;
    WEFT_TRY(SharedItems found, weft::shared_with(txn_, wanted_, class_key));
    take_steps(1 + found.compared / kItemsOfAStep);
    return found.shared;
  }

  std::size_t found(std::string key) {
    seen_.insert(key);
    found_.push_back(std::move(key));
    return found_.size() - 1;
  }

  Status add_class(const std::string& key) {
    WEFT_TRY(std::uint64_t shared, shared_with(key));
    return push_version({shared, first_rank(), Open::What::found, found(key)});
  }

  // Queues a found class at its first version that ranks at `next.from` or later.
  Status push_version(Open next) {
    const std::string& key = found_[next.which];
    WEFT_TRY(Cursor cursor, txn_.cursor(Table::arch_versions));
    if (!next.from.without_metric) {
      WEFT_TRY(auto place, place_from(cursor, txn_, key + order_, next.from.place));
      if (place) return queue_.push({next.bound, {false, *place}, next.what, next.which}), Status{};
      next.from = {true, {}};
    }
    for (ArchPlace from = next.from.place;; from = after(from)) {
      WEFT_TRY(auto place, place_from(cursor, txn_, key, from));
      if (!place) return {};
      from = *place;
      WEFT_TRY(bool elsewhere, has_metric(place->version));
      if (!elsewhere) return queue_.push({next.bound, {true, *place}, next.what, next.which}), Status{};
    }
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
    return push_version(open);
  }

  // Replaces the lists by a count of the common items of each class. Reads the order without a metric, in which one
  // version, the earliest, represents its class in all rows.
  Status count_all() {
    std::vector<Open> classes;
    for (; !queue_.empty(); queue_.pop())
      if (queue_.top().what == Open::What::found) classes.push_back(queue_.top());
    for (const Open& open : classes) queue_.push(open);
    std::unordered_map<VersionId, std::uint64_t> shared;
    for (const CommonItem& item : common_) {
      WEFT_TRY(ItemPlaces places, ItemPlaces::open(txn_, std::string(item.key)));
      for (std::uint64_t left = item.classes; left > 0;) {
        WEFT_TRY(Bytes rows, places.next(left));
        if (rows.empty()) break;
        const std::uint64_t count = rows.size() / kItemPlaceRowBytes;
        for (; !rows.empty(); rows.remove_prefix(kItemPlaceRowBytes)) ++shared[item_place_in(rows).place.version];
        work_.places += count;
        left -= std::min(left, count);
      }
    }
    counts_.emplace(shared.begin(), shared.end());
    std::ranges::sort(*counts_, std::greater(), &std::pair<VersionId, std::uint64_t>::second);
    return {};
  }

  // Queues the counted classes that share at least as many items as the first entry of the queue may.
  Status add_counted() {
    for (; counts_ && next_counted_ < counts_->size(); ++next_counted_) {
      const auto& [version, shared] = (*counts_)[next_counted_];
      if (!queue_.empty() && queue_.top().bound > shared) return {};
      WEFT_TRY(std::string key, need_class_of(txn_, version));
      if (seen_.contains(key)) continue;
      WEFT_CHECK(push_version({shared, first_rank(), Open::What::found, found(std::move(key))}));
    }
    return {};
  }

  Txn& txn_;
  const MatchQuery& query_;
  const std::string order_;
  const WantedItems wanted_;
  std::vector<CommonItem> common_;
  ArchRest rest_{{}};
  std::vector<ArchList> lists_;
  std::vector<ArchList::Head> heads_;  // of the last read_list()
  std::vector<Doubted> doubted_;
  std::unordered_set<VersionId> ranked_;
  std::vector<std::string> found_;  // class keys
  std::unordered_set<std::string> seen_;
  std::priority_queue<Open, std::vector<Open>, Worse> queue_;
  std::vector<MatchHit> hits_;
  std::uint64_t steps_left_;
  MatchWork work_;
  std::optional<std::vector<std::pair<VersionId, std::uint64_t>>> counts_;  // shared items by class, most first
  std::size_t next_counted_ = 0;
};

}  // namespace

Result<std::vector<MatchHit>> match_architectures(Txn& txn, const MatchQuery& query, std::uint64_t steps_max,
                                                  MatchWork* work) {
  Matcher matcher(txn, query, steps_max);
  auto hits = matcher.run();
  if (work != nullptr) *work = matcher.work();
  return hits;
}

}  // namespace weft
