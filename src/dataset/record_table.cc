#include "dataset/record_table.h"

#include <algorithm>
#include <cstring>

#include "dataset/binary_search.h"

namespace weft {
namespace {

template <class T>
T number_at(std::span<const std::byte> bytes, std::uint64_t at) {
  T number;
  std::memcpy(&number, bytes.data() + at, sizeof number);
  return number;
}

}  // namespace

Range RecordTable::row(std::uint64_t number) const {
  const std::uint64_t at = at_.rows + 16 * number;
  return {number_at<std::uint64_t>(bytes_, at), number_at<std::uint64_t>(bytes_, at + 8)};
}

std::string_view RecordTable::path(std::uint64_t number) const {
  const auto end = number_at<std::uint32_t>(bytes_, at_.path_ends + 4 * number);
  const auto begin = number == 0 ? 0 : number_at<std::uint32_t>(bytes_, at_.path_ends + 4 * (number - 1));
  return {reinterpret_cast<const char*>(bytes_.data()) + at_.path_text + begin, end - begin};
}

std::uint64_t RecordTable::row_of(std::uint64_t number) const {
  return number_at<std::uint32_t>(bytes_, at_.path_rows + 4 * number);
}

std::uint64_t RecordTable::first_path(std::string_view at_least) const {
  return first_that(paths(), [&](std::uint64_t number) { return path(number) >= at_least; });
}

// Returns the entry of `dir` that path `number` is, or lies below. `dir` is "" or ends with '/', and the path begins
// with it.
RecordTable::Entry RecordTable::entry_of(std::string_view dir, std::uint64_t number) const {
  const std::string_view whole = path(number);
  const std::size_t slash = whole.find('/', dir.size());
  if (slash == whole.npos) return {whole.substr(dir.size()), row_of(number), number, number + 1};
  std::string behind(whole.substr(0, slash));
  behind += static_cast<char>('/' + 1);  // sorts after all paths below the directory
  return {whole.substr(dir.size(), slash - dir.size()), std::nullopt, number, first_path(behind)};
}

std::optional<RecordTable::Entry> RecordTable::entry_at(std::string_view dir, std::uint64_t from) const {
  std::string prefix(dir);
  if (!prefix.empty()) prefix += '/';
  const std::uint64_t number = std::max(from, first_path(prefix));
  if (number >= paths() || !path(number).starts_with(prefix)) return std::nullopt;
  return entry_of(prefix, number);
}

std::optional<RecordTable::Entry> RecordTable::lookup(std::string_view dir, std::string_view name) const {
  std::string prefix(dir);
  if (!prefix.empty()) prefix += '/';
  const std::string whole = prefix + std::string(name);
  std::uint64_t number = first_path(whole);
  if (number < paths() && path(number) == whole) return entry_of(prefix, number);
  number = first_path(whole + "/");
  if (number >= paths() || !path(number).starts_with(whole + "/")) return std::nullopt;
  return entry_of(prefix, number);
}

RowShares RecordTable::shares() const {
  return {size(), container_bytes(), [table = *this](std::uint64_t number) { return table.row(number).offset; }};
}

}  // namespace weft
