#include "dataset/row_shares.h"

#include <algorithm>
#include <numeric>

#include "dataset/binary_search.h"

namespace weft {
namespace {

// Pseudo-random numbers (SplitMix64). A seed gives the same sequence on every machine.
class Dice {
 public:
  // Skips the first `skipped` numbers of the sequence.
  explicit Dice(std::uint64_t seed, std::uint64_t skipped = 0) : state_(seed + skipped * kStep) {}

  // Returns a number below `bound`, which is far below 2^64.
  std::uint64_t below(std::uint64_t bound) {
    state_ += kStep;
    std::uint64_t value = state_;
    value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9ULL;
    value = (value ^ (value >> 27U)) * 0x94d049bb133111ebULL;
    value ^= value >> 31U;
    return value % bound;
  }

  // Uses one number less than there are items.
  void shuffle(std::span<std::uint64_t> items) {
    for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(i)]);
  }

 private:
  static constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15ULL;
  std::uint64_t state_;
};

}  // namespace

std::uint64_t RowShares::first_at(std::uint64_t offset) const {
  return first_that(rows_, [&](std::uint64_t number) { return offset_of_(number) >= offset; });
}

std::pair<std::uint64_t, std::uint64_t> RowShares::part(std::uint64_t parts, std::uint64_t r) const {
  const auto begin_of = [&](std::uint64_t one) {
    const std::uint64_t offset = bytes_ / parts * one + bytes_ % parts * one / parts;
    return one == parts ? rows_ : first_at(offset);
  };
  return {begin_of(r), begin_of(r + 1)};
}

RowOrder RowShares::order(std::uint64_t seed, std::uint64_t parts, std::uint64_t r) const {
  // Only segments with rows count, so that the shares are even.
  std::vector<std::uint64_t> begins;
  for (std::uint64_t next = 0; next < rows_;) {
    begins.push_back(next);
    next = std::min(first_at((offset_of_(next) / kSegment + 1) * kSegment), next + kSegmentRows);
  }
  std::vector<std::uint64_t> segments(begins.size());
  std::iota(segments.begin(), segments.end(), 0);
  Dice(seed).shuffle(segments);
  begins.push_back(rows_);
  RowOrder order;
  order.seed_ = seed * 4096 + r + 1;
  order.segments_.reserve((segments.size() + parts - 1) / parts);
  for (std::uint64_t i = r; i < segments.size(); i += parts) {
    const std::uint64_t first = begins[segments[i]];
    order.segments_.push_back({first, order.size() + begins[segments[i] + 1] - first});
  }
  return order;
}

// Skips the numbers that the windows before it use: for each window one number less than it has rows.
std::vector<std::uint64_t> RowOrder::window(std::size_t number) const {
  std::vector<std::uint64_t> rows;
  const std::size_t begin = number * kWindow;
  for (std::size_t i = begin; i < std::min(begin + kWindow, segments_.size()); ++i)
    for (std::uint64_t row = 0; row < segments_[i].end - begin_of(i); ++row)
      rows.push_back(segments_[i].first_row + row);
  Dice(seed_, begin_of(begin) - number).shuffle(rows);
  return rows;
}

void RowOrder::read(std::uint64_t first, std::span<std::uint64_t> out) const {
  const auto segment = std::ranges::upper_bound(segments_, first, {}, &Segment::end) - segments_.begin();
  for (std::size_t number = static_cast<std::size_t>(segment) / kWindow; !out.empty(); ++number) {
    const std::vector<std::uint64_t> rows = window(number);
    const std::uint64_t within = first - begin_of(number * kWindow);
    const std::size_t count = std::min<std::uint64_t>(rows.size() - within, out.size());
    std::ranges::copy(std::span(rows).subspan(within, count), out.begin());
    out = out.subspan(count);
    first += count;
  }
}

std::vector<std::uint64_t> RowOrder::rows() const {
  std::vector<std::uint64_t> out(size());
  read(0, out);
  return out;
}

}  // namespace weft
