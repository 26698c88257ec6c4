#include "store/arch_list.h"

#include <algorithm>

namespace weft {
namespace {

constexpr std::size_t kFirstRows = 64;  // four times as many each further time
constexpr std::size_t kMostRows = 16'384;

}  // namespace

std::vector<NeededMarks> grouped(std::vector<std::uint64_t> marks) {
  std::ranges::sort(marks);
  std::vector<NeededMarks> needed;
  for (std::uint64_t one : marks) {
    if (needed.empty() || needed.back().marks != one) needed.push_back({one, 0});
    ++needed.back().items;
  }
  return needed;
}

Result<std::uint64_t> ArchList::read(Txn& txn, std::vector<Head>& heads) {
  if (!next_) return std::uint64_t{0};
  if (!places_) {
    WEFT_TRY(ItemPlaces places, ItemPlaces::open(txn, std::string(item_) + (next_->without_metric ? "" : order_)));
    places_.emplace(std::move(places));
  }
  read_at_once_ = std::clamp(read_at_once_ * 4, kFirstRows, kMostRows);
  WEFT_TRY(std::span<const ItemPlace> places, places_->next(read_at_once_));
  for (const ItemPlace& place : places) add(place, heads);
  if (!places.empty()) next_->place = after(places.back().place);
  move_on(places.size() < read_at_once_);
  return std::uint64_t{places.size()};
}

// Classes without the metric are in no list of its order: theirs are read after all others.
void ArchList::move_on(bool ended) {
  const bool all = read_ >= classes_;
  if (!ended && !all) return;
  places_.reset();
  if (all || next_->without_metric)
    next_.reset();
  else
    next_ = {true, {}};
  read_ = 0;
}

void ArchList::add(const ItemPlace& place, std::vector<Head>& heads) {
  ++read_;
  Rows& rows = rows_of(bound_of(place.marks));
  rows.ranks.push_back({next_->without_metric, place.place});
  if (rows.ranks.size() == rows.first + 1) heads.push_back({rows.bound, rows.ranks.back()});
}

std::optional<ArchList::Head> ArchList::after_first(std::uint64_t bound) {
  Rows& rows = rows_of(bound);
  if (++rows.first >= rows.ranks.size()) return {};
  return Head{bound, rows.ranks[rows.first]};
}

std::uint64_t ArchList::bound_of(std::uint64_t marks) const {
  std::uint64_t bound = 0;
  for (const NeededMarks& needed : needed_) bound += (needed.marks & ~marks) == 0 ? needed.items : 0;
  return bound;
}

ArchList::Rows& ArchList::rows_of(std::uint64_t bound) {
  auto at = std::ranges::find(rows_, bound, &Rows::bound);
  if (at == rows_.end()) at = rows_.insert(at, Rows{bound, {}, 0});
  return *at;
}

}  // namespace weft
