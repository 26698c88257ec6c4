#include "format/tf/flat_tables.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/limits.h"

namespace weft {
namespace {

constexpr std::uint64_t kOffsetBytes = 4;
constexpr std::uint64_t kListHead = 4;  // the bytes of the list of fields, and those of the table

}  // namespace

// No sum of a place in the file and a number of 4 bytes wraps.
Status FlatTables::need(std::uint64_t place, std::uint64_t bytes) const {
  if (place <= size_ && bytes <= size_ - place) return {};
  return Error{Errc::invalid, fmt::format("expected {} bytes at byte {} of a FlatBuffer, got the end of the file at {}",
                                          bytes, place, size_)};
}

Result<FlatTable> FlatTables::root() {
  return table_at(0);
}

Result<FlatTable> FlatTables::table_at(std::uint64_t pointer) {
  if (++tables_ > limits::kFlatTablesMax)
    return Error{Errc::unsupported,
                 fmt::format("expected at most {} tables in a FlatBuffer, got more", limits::kFlatTablesMax)};
  FlatTable table;
  WEFT_TRY(const auto to_table, number_at<std::uint32_t>(pointer));
  table.at = pointer + to_table;
  // A positive distance leads back from the table to its list of fields.
  WEFT_TRY(const auto back, number_at<std::uint32_t>(table.at));
  const auto distance = static_cast<std::int32_t>(back);
  const std::uint64_t forward = distance < 0 ? static_cast<std::uint64_t>(-static_cast<std::int64_t>(distance)) : 0;
  const std::uint64_t backward = distance > 0 ? static_cast<std::uint64_t>(distance) : 0;
  if (backward > table.at)
    return Error{Errc::invalid,
                 fmt::format("expected the fields of a table at byte {}, got them before the file", table.at)};
  table.fields = table.at - backward + forward;
  WEFT_TRY(const auto list_bytes, number_at<std::uint16_t>(table.fields));
  WEFT_TRY(const auto table_bytes, number_at<std::uint16_t>(table.fields + 2));
  WEFT_CHECK(need(table.fields, list_bytes));
  WEFT_CHECK(need(table.at, table_bytes));
  table.list_end = table.fields + list_bytes;
  table.bytes = table_bytes;
  return table;
}

Result<std::optional<std::uint64_t>> FlatTables::field(const FlatTable& table, unsigned number, std::uint64_t width) {
  const std::uint64_t at = table.fields + kListHead + 2 * std::uint64_t{number};
  if (at + 2 > table.list_end) return std::optional<std::uint64_t>();
  WEFT_TRY(const auto offset, number_at<std::uint16_t>(at));
  if (offset == 0) return std::optional<std::uint64_t>();
  if (offset + width > table.bytes)
    return Error{Errc::invalid, fmt::format("expected field {} within {} bytes of its table, got it at {}", number,
                                            table.bytes, offset)};
  return std::optional<std::uint64_t>(table.at + offset);
}

Result<Range> FlatTables::list(const FlatTable& table, unsigned field_number, std::uint64_t width) {
  WEFT_TRY(const std::optional<std::uint64_t> place, field(table, field_number, kOffsetBytes));
  if (!place) return Range{};
  WEFT_TRY(const auto to_list, number_at<std::uint32_t>(*place));
  const std::uint64_t at = *place + to_list;
  WEFT_TRY(const auto count, number_at<std::uint32_t>(at));
  WEFT_CHECK(need(at + kOffsetBytes, count * width));
  return Range{at + kOffsetBytes, count * width};
}

Result<std::string> FlatTables::text(const FlatTable& table, unsigned field_number, std::uint64_t most) {
  WEFT_TRY(const Range bytes, list(table, field_number, 1));
  WEFT_CHECK(cursor_.move_to(bytes.offset));
  return cursor_.text(std::min(bytes.length, most));
}

}  // namespace weft
