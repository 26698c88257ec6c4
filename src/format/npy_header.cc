#include "format/npy_header.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "base/limits.h"
#include "base/text.h"

namespace weft {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Reads Python literals, front to back.
class LiteralReader {
 public:
  explicit LiteralReader(std::string_view text) : text_(text) {}

  std::size_t position() const { return position_; }
  char peek() {
    skip_space();
    return position_ < text_.size() ? text_[position_] : '\0';
  }
  bool at_end() { return skip_space(), position_ == text_.size(); }
  bool take(char c) {
    if (at_end() || text_[position_] != c) return false;
    ++position_;
    return true;
  }
  Status expect(char c) {
    if (take(c)) return {};
    return unexpected(fmt::format("'{}'", c));
  }
  Error unexpected(std::string_view expected);

  Result<std::string_view> string();
  Result<std::uint64_t> integer();
  Result<bool> boolean();
  Result<Shape> shape();
  Status skip_value(std::size_t depth);

 private:
  void skip_space();
  bool only_python_reads() const;
  std::string_view word();
  Status skip_items(char close, std::size_t depth);

  std::string_view text_;
  std::size_t position_ = 0;
};

void LiteralReader::skip_space() {
  while (position_ < text_.size() && (text_[position_] == ' ' || text_[position_] == '\n')) ++position_;
}

Error LiteralReader::unexpected(std::string_view expected) {
  std::string got = at_end() ? "its end" : fmt::format("\"{}\"", printable(text_.substr(position_, 16)));
  return Error{only_python_reads() ? Errc::unsupported : Errc::invalid,
               fmt::format("header: expected {} at byte {}, got {}", expected, position_, got)};
}

// True before text that only Python reads here: a comment, a tab, a string with a prefix, an escape or a second part,
// the rest of an integer that is not decimal.
bool LiteralReader::only_python_reads() const {
  const std::string_view rest = text_.substr(position_);
  if (rest.empty()) return false;
  if (std::string_view("#\t\f\r\\'\"").find(rest[0]) != std::string_view::npos) return true;
  if (position_ > 0 && is_digit(text_[position_ - 1])) return is_letter(rest[0]) || rest[0] == '_';
  const std::size_t quote = rest.find_first_of("'\"");
  return quote != std::string_view::npos && quote > 0 && quote <= 2 &&
         std::all_of(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(quote), is_letter);
}

std::string_view LiteralReader::word() {
  skip_space();
  std::size_t begin = position_;
  while (position_ < text_.size() && is_letter(text_[position_])) ++position_;
  return text_.substr(begin, position_ - begin);
}

Result<std::string_view> LiteralReader::string() {
  char quote = peek();
  if (quote != '\'' && quote != '"') return unexpected("a string");
  std::size_t begin = position_ + 1;
  std::size_t end = text_.find_first_of(quote == '\'' ? "'\\\n" : "\"\\\n", begin);
  if (end == std::string_view::npos || text_[end] != quote) {
    position_ = std::min(end, text_.size());
    return unexpected("a string on one line without escapes");
  }
  position_ = end + 1;
  return text_.substr(begin, end - begin);
}

Result<std::uint64_t> LiteralReader::integer() {
  skip_space();
  std::size_t end = position_;
  while (end < text_.size() && is_digit(text_[end])) ++end;
  auto value = parse_u64(text_.substr(position_, end - position_));
  if (!value) return unexpected("an integer below 2^64");
  position_ = end;
  take('L');
  return *value;
}

Result<bool> LiteralReader::boolean() {
  std::size_t begin = position_;
  std::string_view name = word();
  if (name == "True") return true;
  if (name == "False") return false;
  position_ = begin;
  return unexpected("True or False");
}

Result<Shape> LiteralReader::shape() {
  WEFT_CHECK(expect('('));
  Shape shape;
  bool comma = true;
  while (!take(')')) {
    if (!comma) return unexpected("',' or ')'");
    if (shape.size() == limits::kDimensionsMax)
      return Error{Errc::unsupported,
                   fmt::format("header: expected at most {} dimensions, got more", limits::kDimensionsMax)};
    WEFT_TRY(std::uint64_t dimension, integer());
    shape.push_back(dimension);
    comma = take(',');
  }
  if (shape.size() == 1 && !comma) return unexpected("',' after the only dimension of a tuple");  // "(3)" is a number
  return shape;
}

Status LiteralReader::skip_value(std::size_t depth) {
  if (depth > limits::kNpyLiteralDepthMax)
    return Error{Errc::invalid,
                 fmt::format("header: expected at most {} nested lists, got more", limits::kNpyLiteralDepthMax)};
  char first = peek();
  if (first == '\'' || first == '"') {
    auto text = string();
    return text.ok() ? Status{} : Status{text.error()};
  }
  if (is_digit(first)) {
    auto number = integer();
    return number.ok() ? Status{} : Status{number.error()};
  }
  if (take('(')) return skip_items(')', depth + 1);
  if (take('[')) return skip_items(']', depth + 1);
  std::size_t begin = position_;
  std::string_view name = word();
  if (name == "True" || name == "False" || name == "None") return {};
  position_ = begin;
  return unexpected("a literal");
}

Status LiteralReader::skip_items(char close, std::size_t depth) {
  bool comma = true;
  while (!take(close)) {
    if (!comma) return unexpected(fmt::format("',' or '{}'", close));
    WEFT_CHECK(skip_value(depth));
    comma = take(',');
  }
  return {};
}

struct Seen {
  bool descr = false, fortran_order = false, shape = false;
};

Status read_descr(LiteralReader& reader, NpyHeader& header) {
  char first = reader.peek();
  if (first == '[' || first == '(') return reader.skip_value(1);
  WEFT_TRY(header.descr, reader.string());
  if (header.descr.empty()) return Error{Errc::invalid, "header: expected a type in 'descr', got an empty string"};
  return {};
}

Status read_member(LiteralReader& reader, NpyHeader& header, Seen& seen) {
  WEFT_TRY(std::string_view key, reader.string());
  WEFT_CHECK(reader.expect(':'));
  bool* flag = key == "descr"           ? &seen.descr
               : key == "fortran_order" ? &seen.fortran_order
               : key == "shape"         ? &seen.shape
                                        : nullptr;
  if (flag == nullptr || *flag)
    return Error{flag == nullptr ? Errc::invalid : Errc::unsupported,  // Python takes the last value of a key
                 fmt::format("header: expected 'descr', 'fortran_order' and 'shape' once each, got {}'{}'",
                             flag == nullptr ? "" : "a second ", printable(key, 40))};
  *flag = true;
  if (flag == &seen.descr) return read_descr(reader, header);
  if (flag == &seen.fortran_order) {
    WEFT_TRY(header.fortran_order, reader.boolean());
  } else {
    WEFT_TRY(header.shape, reader.shape());
  }
  return {};
}

// True for the unit of a time type: "", "[ns]", "[25s]".
bool is_time_unit(std::string_view text) {
  if (text.empty()) return true;
  if (text.size() < 3 || text.front() != '[' || text.back() != ']') return false;
  text = text.substr(1, text.size() - 2);
  return std::all_of(text.begin(), text.end(), [](char c) { return is_digit(c) || is_letter(c); });
}

// Returns a numpy type that DType has no name for; nothing if numpy does not have it.
std::optional<NpyElement> other_element(char kind, std::string_view digits, std::string_view unit) {
  constexpr std::uint64_t kElementBytesMax = 1U << 31U;  // numpy stores element sizes in an int
  auto element = [](std::uint64_t bytes) { return NpyElement{DType::npy_other, bytes, false}; };
  if (kind == 'O' || kind == 'T') return NpyElement{DType::npy_other, 0, true};
  auto count = parse_u64(digits);
  if (!count || *count > kElementBytesMax / 4) return std::nullopt;
  if (kind == 'M' || kind == 'm') return *count == 8 && is_time_unit(unit) ? std::optional(element(8)) : std::nullopt;
  if (!unit.empty()) return std::nullopt;
  if (kind == 'U') return element(*count * 4);
  if (kind == 'S' || kind == 'a' || kind == 'V') return element(*count);
  if ((kind == 'f' && (*count == 12 || *count == 16)) || (kind == 'c' && (*count == 24 || *count == 32)))
    return element(*count);
  return std::nullopt;
}

const DTypeInfo* plain_type(std::string_view kind_and_size) {
  if (kind_and_size.starts_with('V')) return nullptr;
  for (const DTypeInfo& info : all_dtypes())
    if (info.npy_descr.size() > 1 && info.npy_descr.substr(1) == kind_and_size) return &info;
  return nullptr;
}

}  // namespace

Result<NpyHeader> parse_npy_header(std::string_view text) {
  LiteralReader reader(text);
  NpyHeader header;
  Seen seen;
  reader.peek();
  std::size_t begin = reader.position();
  WEFT_CHECK(reader.expect('{'));
  bool comma = true;
  while (!reader.take('}')) {
    if (!comma) return reader.unexpected("',' or '}'");
    WEFT_CHECK(read_member(reader, header, seen));
    comma = reader.take(',');
  }
  header.dict = text.substr(begin, reader.position() - begin);
  if (!reader.at_end()) return reader.unexpected("white space after the dict");
  if (!seen.descr || !seen.fortran_order || !seen.shape)
    return Error{Errc::invalid, fmt::format("header: expected 'descr', 'fortran_order' and 'shape', got no '{}'",
                                            !seen.descr           ? "descr"
                                            : !seen.fortran_order ? "fortran_order"
                                                                  : "shape")};
  return header;
}

Result<NpyElement> parse_npy_descr(std::string_view descr) {
  constexpr std::string_view kOrders = "<>|=";  // '|' is no order; '=' is the order of the writer: little-endian
  std::string_view type = descr;
  bool big_endian = type.starts_with('>');
  if (!type.empty() && kOrders.find(type[0]) != std::string_view::npos) type.remove_prefix(1);
  if (const DTypeInfo* info = plain_type(type)) {
    bool swapped = big_endian && info->block_bytes > 1;
    return NpyElement{swapped ? DType::npy_other : info->type, info->block_bytes, false};
  }
  std::size_t digits = 1;
  while (digits < type.size() && is_digit(type[digits])) ++digits;
  std::optional<NpyElement> element;
  if (!type.empty())
    element = other_element(type[0], type.substr(1, digits - 1), type.substr(std::min(digits, type.size())));
  if (!element)
    return Error{Errc::unsupported,
                 fmt::format("header: expected a type of numpy in 'descr', got '{}'", printable(descr, 40))};
  return *element;
}

}  // namespace weft
