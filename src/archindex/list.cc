#include "archindex/list.h"

#include <algorithm>

namespace weft {
namespace {

constexpr std::size_t kFirstRows = 16;  // rows of the first read; each further read takes four times as many
constexpr std::size_t kMostRows = 16'384;

bool may_have(const ListedRow& row, const AskedItem& item) {
  return (item.marks & ~row.marks) == 0 && (item.needs & row.lacks) == 0;
}

}  // namespace

ArchList::ArchList(Bytes item, std::string order, std::uint64_t classes, std::vector<AskedItem> asked)
    : item_(item),
      order_(std::move(order)),
      classes_(classes),
      asked_(std::move(asked)),
      next_(ArchRank{order_.empty(), {}}) {
  for (const AskedItem& one : asked_) {
    auto at = std::ranges::find(needed_, one.marks, &Needed::marks);
    if (at == needed_.end()) at = needed_.insert(at, Needed{one.marks, 0});
    ++at->items;
  }
}

Result<std::uint64_t> ArchList::read(Txn& txn, std::vector<Head>& heads) {
  if (!next_) return std::uint64_t{0};
  if (!places_) {
    WEFT_TRY(ItemPlaces places, ItemPlaces::open(txn, std::string(item_) + (next_->without_metric ? "" : order_)));
    places_.emplace(std::move(places));
  }
  read_at_once_ = std::clamp(read_at_once_ * 4, kFirstRows, kMostRows);
  std::size_t left = read_at_once_;
  while (left > 0) {
    WEFT_TRY(Bytes rows, places_->next(left));
    if (rows.empty()) break;
    add(rows, heads);
    left -= rows.size() / kItemPlaceRowBytes;
  }
  const std::uint64_t rows = read_at_once_ - left;
  move_on(left > 0);
  return rows;
}

// Ends the list, or switches to the order without a metric: the metric's order lacks the classes without the metric.
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

void ArchList::add(Bytes rows, std::vector<Head>& heads) {
  pieces_.push_back({rows_read_, rows, next_->without_metric});
  next_->place = after(item_place_in(rows.substr(rows.size() - kItemPlaceRowBytes)).place);
  for (; !rows.empty(); rows.remove_prefix(kItemPlaceRowBytes)) {
    Rows& of = rows_of(bound_of(item_place_in(rows).marks));
    of.rows.push_back(rows_read_++);
    ++read_;
    if (of.rows.size() == of.first + 1) heads.push_back({of.bound, row(of.rows.back()).rank});
  }
}

ListedRow ArchList::row(std::uint32_t number) const {
  const Piece& piece = *--std::ranges::upper_bound(pieces_, number, {}, &Piece::first);
  const ItemPlace at = item_place_in(piece.rows.substr((number - piece.first) * kItemPlaceRowBytes));
  return {{piece.without_metric, at.place}, at.marks, 0, 0};
}

ListedRow ArchList::take_first(std::uint64_t bound, std::optional<Head>& next) {
  Rows& of = rows_of(bound);
  const ListedRow taken = row(of.rows[of.first++]);
  if (of.first < of.rows.size()) next = Head{bound, row(of.rows[of.first]).rank};
  return taken;
}

Result<std::optional<std::uint64_t>> ArchList::ask(Txn& txn, ListedRow& row) const {
  const AskedItem* item = asked_.size() > kToldApart ? nullptr : rarest_doubtful(row);
  if (item == nullptr) return std::optional<std::uint64_t>();
  const std::string key = std::string(item->key) + (row.rank.without_metric ? "" : order_);
  WEFT_TRY(bool has, has_item_place(txn, key, row.rank.place));
  if (has)
    row.has |= item->needs;
  else
    row.lacks |= 1ULL << static_cast<std::size_t>(item - asked_.data());
  return std::optional(bound_of(row));
}

// Returns the rarest item that the class may have but is not known to have. Ties go to the later item: classes that
// have an item also have its inputs.
const AskedItem* ArchList::rarest_doubtful(const ListedRow& row) const {
  const AskedItem* rarest = nullptr;
  for (std::size_t i = 0; i < asked_.size(); ++i) {
    const AskedItem& item = asked_[i];
    if (!item.is_beside || (row.has >> i & 1U) != 0 || !may_have(row, item)) continue;
    if (rarest == nullptr || item.classes <= rarest->classes) rarest = &item;
  }
  return rarest;
}

std::uint64_t ArchList::bound_of(std::uint64_t marks) const {
  std::uint64_t bound = 0;
  for (const Needed& needed : needed_) bound += (needed.marks & ~marks) == 0 ? needed.items : 0;
  return bound;
}

std::uint64_t ArchList::bound_of(const ListedRow& row) const {
  return static_cast<std::uint64_t>(
      std::ranges::count_if(asked_, [&](const AskedItem& item) { return may_have(row, item); }));
}

ArchList::Rows& ArchList::rows_of(std::uint64_t bound) {
  auto at = std::ranges::find(rows_, bound, &Rows::bound);
  if (at == rows_.end()) at = rows_.insert(at, Rows{bound, {}, 0});
  return *at;
}

}  // namespace weft
