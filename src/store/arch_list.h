// The classes that have one item, as a match reads them: in the order of the metric, some at a time, each with a bound
// of what it may share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "store/arch_places.h"

namespace weft {

// Versions with the metric come first, then those without.
struct ArchRank {
  bool without_metric = false;
  ArchPlace place;
  auto operator<=>(const ArchRank&) const = default;
};

// So many items that a class can have only where its marks are all these.
struct NeededMarks {
  std::uint64_t marks = 0;
  std::uint64_t items = 0;
};
// Of what each item needs.
std::vector<NeededMarks> grouped(std::vector<std::uint64_t> marks);

class ArchList {
 public:
  // Of an item that so many classes have. `order` is that of the metric, "" for none.
  ArchList(Bytes item, std::string order, std::uint64_t classes, std::vector<NeededMarks> needed)
      : item_(item),
        order_(std::move(order)),
        classes_(classes),
        needed_(std::move(needed)),
        next_(ArchRank{order_.empty(), {}}) {}

  struct Head {
    std::uint64_t bound = 0;
    ArchRank rank;
  };
  // Reads some rows, more each further time. Returns how many; `heads` gets those that are now the first of their
  // bound.
  Result<std::uint64_t> read(Txn& txn, std::vector<Head>& heads);
  // Nothing of it that is not read yet comes before; none: all is read.
  const std::optional<ArchRank>& next() const { return next_; }
  // Takes away the first row with this bound, and returns the next.
  std::optional<Head> after_first(std::uint64_t bound);

 private:
  struct Rows {
    std::uint64_t bound = 0;
    std::vector<ArchRank> ranks;
    std::size_t first = 0;
  };
  std::uint64_t bound_of(std::uint64_t marks) const;
  Rows& rows_of(std::uint64_t bound);
  void add(const ItemPlace& place, std::vector<Head>& heads);
  void move_on(bool ended);

  Bytes item_;
  std::string order_;
  std::uint64_t classes_;
  std::vector<NeededMarks> needed_;
  std::optional<ArchRank> next_;
  std::optional<ItemPlaces> places_;
  std::size_t read_at_once_ = 0;
  std::uint64_t read_ = 0;  // in this order
  std::vector<Rows> rows_;
};

}  // namespace weft
