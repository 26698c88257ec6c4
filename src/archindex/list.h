// The classes that have one item. A search reads them some rows at a time, in the order of the metric, and gets for
// each class an upper bound of the items that it shares with the query.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "archindex/rows.h"

namespace weft {

// Rank of a version in a search: versions with the metric come first, then versions without.
struct ArchRank {
  bool without_metric = false;
  ArchPlace place;
  auto operator<=>(const ArchRank&) const = default;
};

// If a list has at most this many query items, a row records with one bit each which of them its class has.
inline constexpr std::size_t kToldApart = 64;

// A query item in relation to the item of a list.
struct AskedItem {
  Bytes key;
  std::uint64_t classes = 0;  // number of classes that have it
  std::uint64_t marks = 0;    // set in the row of each class that has both items
  std::uint64_t needs = 0;    // bits of the item and of its upstream, by position among the first kToldApart
  bool is_beside = false;     // false for the list's item and its upstream, which each class of the list has
};

// A row of a list, with the results of the lookups for its class.
struct ListedRow {
  ArchRank rank;
  std::uint64_t marks = 0;
  std::uint64_t has = 0;    // items that the class has: bits as in AskedItem::needs
  std::uint64_t lacks = 0;  // items that the class lacks; it also lacks the items that need them
};

class ArchList {
 public:
  // The list of `item`, which `classes` classes have. `order` is the order of the metric, "" for none. `asked` lists
  // inputs before the items that need them.
  ArchList(Bytes item, std::string order, std::uint64_t classes, std::vector<AskedItem> asked);

  struct Head {
    std::uint64_t bound = 0;
    ArchRank rank;
  };
  // Reads the next rows, more on each call, and returns their number. Appends to `heads` the rows that became the first
  // of their bound.
  Result<std::uint64_t> read(Txn& txn, std::vector<Head>& heads);
  // No unread row ranks before this. Empty once all rows are read.
  const std::optional<ArchRank>& next() const { return next_; }
  // Removes and returns the first row with this bound; `next` receives the row after it.
  ListedRow take_first(std::uint64_t bound, std::optional<Head>& next);

  // Looks up the rarest item that the row's class seems to have, records the result in the row and returns the new
  // bound. Empty if no item is in doubt, or if the list has more than kToldApart items.
  Result<std::optional<std::uint64_t>> ask(Txn& txn, ListedRow& row) const;

 private:
  struct Piece {
    std::uint64_t first = 0;  // number of its first row among all rows read
    Bytes rows;
    bool without_metric = false;
  };
  struct Rows {
    std::uint64_t bound = 0;
    std::vector<std::uint32_t> rows;
    std::size_t first = 0;
  };
  // Number of query items with the same marks: a class that lacks one of the marks has none of these items.
  struct Needed {
    std::uint64_t marks = 0;
    std::uint64_t items = 0;
  };
  std::uint64_t bound_of(std::uint64_t marks) const;
  std::uint64_t bound_of(const ListedRow& row) const;
  const AskedItem* rarest_doubtful(const ListedRow& row) const;
  Rows& rows_of(std::uint64_t bound);
  void add(Bytes rows, std::vector<Head>& heads);
  ListedRow row(std::uint32_t number) const;
  void move_on(bool ended);

  Bytes item_;
  std::string order_;
  std::uint64_t classes_;
  std::vector<AskedItem> asked_;
  std::vector<Needed> needed_;
  std::optional<ArchRank> next_;
  std::optional<ItemPlaces> places_;
  std::size_t read_at_once_ = 0;
  std::uint64_t read_ = 0;  // rows read in the current order
  std::vector<Piece> pieces_;
  std::uint32_t rows_read_ = 0;  // rows read in both orders
  std::vector<Rows> rows_;
};

}  // namespace weft
