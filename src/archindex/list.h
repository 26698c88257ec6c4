// The classes that have one item, as a match reads them: in the order of the metric, some at a time, each with a bound
// of what it may share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "archindex/rows.h"

namespace weft {

// Versions with the metric come first, then those without.
struct ArchRank {
  bool without_metric = false;
  ArchPlace place;
  auto operator<=>(const ArchRank&) const = default;
};

// Of so many items that are asked for at most, a row can say which its class has.
inline constexpr std::size_t kToldApart = 64;

// An item that is asked for, as it stands to that of a list.
struct AskedItem {
  Bytes key;
  std::uint64_t classes = 0;  // that have it
  std::uint64_t marks = 0;    // of a class that has both
  std::uint64_t needs = 0;    // itself and what is upstream, by place among the first kToldApart
  bool is_beside = false;     // else a class that has that of the list has this too
};

// A row of a list, and what is known of its class beyond its marks.
struct ListedRow {
  ArchRank rank;
  std::uint64_t marks = 0;
  std::uint64_t has = 0;    // as AskedItem::needs
  std::uint64_t lacks = 0;  // these and what needs them
};

class ArchList {
 public:
  // Of an item that so many classes have. `order` is that of the metric, "" for none. `asked` has inputs first.
  ArchList(Bytes item, std::string order, std::uint64_t classes, std::vector<AskedItem> asked);

  struct Head {
    std::uint64_t bound = 0;
    ArchRank rank;
  };
  // Reads some rows, more each further time. Returns how many; `heads` gets those that are now the first of their
  // bound.
  Result<std::uint64_t> read(Txn& txn, std::vector<Head>& heads);
  // Nothing of it that is not read yet comes before; none: all is read.
  const std::optional<ArchRank>& next() const { return next_; }
  // Takes away the first row with this bound; `next` gets the one after it.
  ListedRow take_first(std::uint64_t bound, std::optional<Head>& next);

  // Whether the class has one more of the items that it seems to have, the rarest; none: nothing is left to ask, or
  // there are too many items to tell them apart. Returns how many it may have now.
  Result<std::optional<std::uint64_t>> ask(Txn& txn, ListedRow& row) const;

 private:
  struct Piece {
    std::uint64_t first = 0;  // among all rows that were read
    Bytes rows;
    bool without_metric = false;
  };
  struct Rows {
    std::uint64_t bound = 0;
    std::vector<std::uint32_t> rows;
    std::size_t first = 0;
  };
  // So many items that a class can have only where its marks are all these.
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
  std::uint64_t read_ = 0;  // in this order
  std::vector<Piece> pieces_;
  std::uint32_t rows_read_ = 0;  // in both orders
  std::vector<Rows> rows_;
};

}  // namespace weft
