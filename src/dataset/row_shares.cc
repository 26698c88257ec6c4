#include "dataset/row_shares.h"

#include <numeric>
#include <span>

#include "dataset/first_that.h"

namespace weft {
namespace {

// A sequence that a seed decides, the same on every machine (SplitMix64).
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed) {}

  // Below `bound`, which is far below 2^64.
  std::uint64_t below(std::uint64_t bound) {
    state_ += 0x9e3779b97f4a7c15ULL;
    std::uint64_t value = state_;
    value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9ULL;
    value = (value ^ (value >> 27U)) * 0x94d049bb133111ebULL;
    value ^= value >> 31U;
    return value % bound;
  }

  void shuffle(std::span<std::uint64_t> items) {
    for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(i)]);
  }

 private:
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

std::vector<std::uint64_t> RowShares::order(std::uint64_t seed, std::uint64_t parts, std::uint64_t r) const {
  // Segments that have rows, so that the shares are even.
  std::vector<std::uint64_t> begins;
  for (std::uint64_t next = 0; next < rows_;) {
    begins.push_back(next);
    next = first_at((offset_of_(next) / kSegment + 1) * kSegment);
  }
  std::vector<std::uint64_t> segments(begins.size());
  std::iota(segments.begin(), segments.end(), 0);
  Dice(seed).shuffle(segments);
  begins.push_back(rows_);
  std::vector<std::uint64_t> rows;
  std::size_t window = 0, in_window = 0;  // where in `rows` the window begins
  Dice dice(seed * 4096 + r + 1);
  for (std::uint64_t i = r; i < segments.size(); i += parts) {
    for (std::uint64_t one = begins[segments[i]]; one < begins[segments[i] + 1]; ++one) rows.push_back(one);
    if (++in_window < kWindow) continue;
    dice.shuffle(std::span(rows).subspan(window));
    window = rows.size();
    in_window = 0;
  }
  dice.shuffle(std::span(rows).subspan(window));
  return rows;
}

}  // namespace weft
