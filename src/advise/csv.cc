#include "advise/csv.h"

#include <fmt/core.h>

#include <vector>

#include "base/limits.h"
#include "base/text.h"

namespace weft::advise {
namespace {

constexpr std::string_view kBlanks = " \t";  // around a field

// Removes one field from the start of `text` and returns it. The comma after it stays. Nothing: the quotes do not
// close, or other text follows them.
std::optional<std::string> take_field(std::string_view& text) {
  std::string field;
  if (!text.starts_with('"')) {
    field = text.substr(0, text.find(','));
    text.remove_prefix(field.size());
    return field;
  }
  text.remove_prefix(1);
  for (;;) {
    const auto quote = text.find('"');
    if (quote == std::string_view::npos) return std::nullopt;
    field += text.substr(0, quote);
    text.remove_prefix(quote + 1);
    if (!text.starts_with('"')) break;
    field += '"';
    text.remove_prefix(1);
  }
  if (!text.empty() && text[0] != ',') return std::nullopt;
  return field;
}

Result<std::vector<std::string>> fields_of(std::string_view line) {
  std::vector<std::string> fields;
  for (;;) {
    auto field = take_field(line);
    if (!field) return Error{Errc::invalid, "a quoted field does not end before a comma or the end of the line"};
    fields.push_back(std::move(*field));
    if (line.empty()) return fields;
    line.remove_prefix(1);
  }
}

std::optional<std::size_t> column_of(const std::vector<std::string>& names, std::string_view name) {
  for (std::size_t i = 0; i < names.size(); ++i)
    if (trimmed(names[i], kBlanks) == name) return i;
  return std::nullopt;
}

Result<std::size_t> needed_column(const std::vector<std::string>& names, std::string_view name) {
  if (const auto column = column_of(names, name)) return *column;
  std::string there;
  for (const std::string& each : names) there += (there.empty() ? "" : ", ") + each;
  return Error{Errc::invalid, fmt::format("no column \"{}\"; it has {}", printable(name), printable(there))};
}

}  // namespace

Status CsvLosses::add(std::string_view bytes, LossSeries& into) {
  for (;;) {
    const auto end = bytes.find('\n');
    const std::string_view piece = bytes.substr(0, end);
    if (rest_.size() + piece.size() > limits::kLossLineMax)
      return Error{Errc::invalid, fmt::format("line {}: longer than {} bytes", lines_ + 1, limits::kLossLineMax)};
    rest_ += piece;
    if (end == std::string_view::npos) return {};
    WEFT_CHECK(line(rest_, into));
    rest_.clear();
    bytes.remove_prefix(end + 1);
  }
}

Status CsvLosses::end(LossSeries& into) {
  if (!rest_.empty()) WEFT_CHECK(line(rest_, into));
  rest_.clear();
  if (!columns_) return Error{Errc::invalid, "expected a line with the names of the columns, got nothing"};
  return {};
}

Status CsvLosses::line(std::string_view text, LossSeries& into) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (++lines_ == 1 && text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  if (text.ends_with('\r')) text.remove_suffix(1);
  if (text.empty()) return {};
  Status status = columns_ ? row(text, into) : header(text);
  if (status.ok()) return {};
  return Error{status.error().code, fmt::format("line {}: {}", lines_, status.error().message)};
}

Status CsvLosses::header(std::string_view text) {
  WEFT_TRY(const auto names, fields_of(text));
  Columns columns;
  WEFT_TRY(columns.loss, needed_column(names, names_.loss));
  WEFT_TRY(columns.step, needed_column(names, names_.step));
  columns.time = column_of(names, kTimeName);
  columns.save = column_of(names, kSaveName);
  columns_ = columns;
  return {};
}

Status CsvLosses::row(std::string_view text, LossSeries& into) const {
  WEFT_TRY(const auto fields, fields_of(text));
  auto field = [&](std::optional<std::size_t> column) {
    return column && *column < fields.size() ? trimmed(fields[*column], kBlanks) : std::string_view();
  };
  if (field(columns_->step).empty() || field(columns_->loss).empty()) return {};
  WEFT_TRY(const LossPoint point, point_of({.step = field(columns_->step),
                                            .loss = field(columns_->loss),
                                            .time = field(columns_->time),
                                            .save = field(columns_->save)},
                                           names_));
  return into.add(point);
}

}  // namespace weft::advise
