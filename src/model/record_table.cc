#include "model/record_table.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "model/record_layout.h"

namespace weft {
namespace {

template <class T>
T number_at(std::span<const std::byte> bytes, std::uint64_t at) {
  T number;
  std::memcpy(&number, bytes.data() + at, sizeof number);
  return number;
}

// The smallest of [0, count) for which `holds`, which is false and then true; else count.
template <class Holds>
std::uint64_t first_that(std::uint64_t count, const Holds& holds) {
  std::uint64_t begin = 0;
  while (begin < count) {
    const std::uint64_t middle = begin + (count - begin) / 2;
    if (holds(middle))
      count = middle;
    else
      begin = middle + 1;
  }
  return begin;
}

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

Range RecordTable::row(std::uint64_t number) const {
  const std::uint64_t at = rows_at_ + 16 * number;
  return {number_at<std::uint64_t>(bytes_, at), number_at<std::uint64_t>(bytes_, at + 8)};
}

std::string_view RecordTable::path(std::uint64_t number) const {
  const auto end = number_at<std::uint32_t>(bytes_, path_ends_at_ + 4 * number);
  const auto begin = number == 0 ? 0 : number_at<std::uint32_t>(bytes_, path_ends_at_ + 4 * (number - 1));
  return {reinterpret_cast<const char*>(bytes_.data()) + path_text_at_ + begin, end - begin};
}

std::uint64_t RecordTable::first_path(std::string_view at_least) const {
  return first_that(paths_, [&](std::uint64_t number) { return path(number) >= at_least; });
}

std::uint64_t RecordTable::first_row_at(std::uint64_t offset) const {
  return first_that(rows_, [&](std::uint64_t number) { return row(number).offset >= offset; });
}

// `dir` is "" or ends with '/', and the path begins with it.
RecordTable::Entry RecordTable::entry_of(std::string_view dir, std::uint64_t number) const {
  const std::string_view whole = path(number);
  const std::size_t slash = whole.find('/', dir.size());
  if (slash == whole.npos)
    return {whole.substr(dir.size()), number_at<std::uint32_t>(bytes_, path_rows_at_ + 4 * number), number, number + 1};
  std::string behind(whole.substr(0, slash));
  behind += static_cast<char>('/' + 1);  // no path below the directory is as large
  return {whole.substr(dir.size(), slash - dir.size()), std::nullopt, number, first_path(behind)};
}

std::optional<RecordTable::Entry> RecordTable::entry_at(std::string_view dir, std::uint64_t from) const {
  std::string prefix(dir);
  if (!prefix.empty()) prefix += '/';
  const std::uint64_t number = std::max(from, first_path(prefix));
  if (number >= paths_ || !path(number).starts_with(prefix)) return std::nullopt;
  return entry_of(prefix, number);
}

std::optional<RecordTable::Entry> RecordTable::lookup(std::string_view dir, std::string_view name) const {
  std::string prefix(dir);
  if (!prefix.empty()) prefix += '/';
  const std::string whole = prefix + std::string(name);
  std::uint64_t number = first_path(whole);
  if (number < paths_ && path(number) == whole) return entry_of(prefix, number);
  number = first_path(whole + "/");
  if (number >= paths_ || !path(number).starts_with(whole + "/")) return std::nullopt;
  return entry_of(prefix, number);
}

std::pair<std::uint64_t, std::uint64_t> RecordTable::part(std::uint64_t parts, std::uint64_t r) const {
  const auto begin_of = [&](std::uint64_t one) {
    const std::uint64_t offset = container_bytes_ / parts * one + container_bytes_ % parts * one / parts;
    return one == parts ? rows_ : first_row_at(offset);
  };
  return {begin_of(r), begin_of(r + 1)};
}

std::vector<std::uint64_t> RecordTable::order(std::uint64_t seed, std::uint64_t parts, std::uint64_t r) const {
  // Segments that have rows, so that the shares are even.
  std::vector<std::uint64_t> begins;
  for (std::uint64_t next = 0; next < rows_;) {
    begins.push_back(next);
    next = first_row_at((row(next).offset / kOrderSegment + 1) * kOrderSegment);
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
    if (++in_window < kOrderWindow) continue;
    dice.shuffle(std::span(rows).subspan(window));
    window = rows.size();
    in_window = 0;
  }
  dice.shuffle(std::span(rows).subspan(window));
  return rows;
}

}  // namespace weft
