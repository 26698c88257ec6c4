#include "base/json.h"

#include <fmt/core.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace weft {
namespace {

void append_escaped(std::string& out, char c) {
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      break;
  }
  if (is_control(static_cast<unsigned char>(c)))
    out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
  else
    out += c;
}

// Terminals show JSON too, so control characters are escaped. All of them are in the basic plane: one escape holds
// each.
void append_utf8(std::string& out, std::string_view text) {
  while (!text.empty()) {
    const CodePoint c = first_code_point(text);
    if (c.length == 1)
      append_escaped(out, text.front());
    else if (steers_terminal(c.value))
      out += fmt::format("\\u{:04x}", static_cast<std::uint32_t>(c.value));
    else
      out += text.substr(0, c.length);
    text.remove_prefix(c.length);
  }
}

// Adapts JsonHandler to nlohmann's SAX interface, which prescribes these names and bools.
class Sax {
 public:
  using number_integer_t = std::int64_t;
  using number_unsigned_t = std::uint64_t;
  using number_float_t = double;
  using string_t = std::string;
  using binary_t = nlohmann::json::binary_t;

  Sax(JsonHandler& handler, std::size_t depth_max) : handler_(handler), depth_max_(depth_max) {}

  bool null() { return keep(handler_.null()); }
  bool boolean(bool value) { return keep(handler_.boolean(value)); }
  bool number_integer(std::int64_t value) { return keep(handler_.negative(value)); }
  bool number_unsigned(std::uint64_t value) { return keep(handler_.number(value)); }
  bool number_float(double value, const std::string& /*text*/) { return keep(handler_.real(value)); }
  bool string(std::string& value) { return keep(handler_.text(value)); }
  bool binary(binary_t& /*value*/) { return false; }
  bool start_object(std::size_t /*elements*/) { return deeper() && keep(handler_.begin_object()); }
  bool end_object() { return --depth_, keep(handler_.end_object()); }
  bool start_array(std::size_t /*elements*/) { return deeper() && keep(handler_.begin_array()); }
  bool end_array() { return --depth_, keep(handler_.end_array()); }
  bool key(std::string& name) { return keep(handler_.key(name)); }
  bool parse_error(std::size_t position, const std::string& token, const nlohmann::json::exception& /*e*/) {
    status_ = Error{Errc::invalid, fmt::format("not JSON at byte {}, near \"{}\"", position, printable(token, 40))};
    return false;
  }

  Status status() { return std::move(status_); }

 private:
  bool deeper() {
    if (++depth_ <= depth_max_) return true;
    status_ = Error{Errc::invalid, fmt::format("JSON is nested deeper than {} levels", depth_max_)};
    return false;
  }
  bool keep(Status status) {
    if (status.ok()) return true;
    status_ = std::move(status);
    return false;
  }

  JsonHandler& handler_;
  std::size_t depth_max_;
  std::size_t depth_ = 0;
  Status status_;
};

}  // namespace

std::string json_quote(std::string_view text) {
  std::string out = "\"";
  if (valid_utf8(text)) {
    append_utf8(out, text);
  } else {
    for (char c : text) {
      if (static_cast<unsigned char>(c) < 0x80)
        append_escaped(out, c);
      else
        out += "\xef\xbf\xbd";
    }
  }
  return out += '"';
}

void JsonWriter::newline() {
  if (!pretty_) return;
  text_ += '\n';
  text_.append(2 * has_items_.size(), ' ');
}

void JsonWriter::before_value() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (has_items_.empty()) return;
  if (has_items_.back()) text_ += ',';
  has_items_.back() = true;
  newline();
}

JsonWriter& JsonWriter::begin_object() {
  before_value();
  text_ += '{';
  has_items_.push_back(false);
  return *this;
}

JsonWriter& JsonWriter::end_object() {
  bool items = has_items_.back();
  has_items_.pop_back();
  if (items) newline();
  text_ += '}';
  return *this;
}

JsonWriter& JsonWriter::begin_array() {
  before_value();
  text_ += '[';
  has_items_.push_back(false);
  return *this;
}

JsonWriter& JsonWriter::end_array() {
  bool items = has_items_.back();
  has_items_.pop_back();
  if (items) newline();
  text_ += ']';
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  before_value();
  text_ += json_quote(name);
  text_ += pretty_ ? ": " : ":";
  after_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
  return raw(json_quote(text));
}
JsonWriter& JsonWriter::value(std::uint64_t number) {
  return raw(fmt::format("{}", number));
}
JsonWriter& JsonWriter::value(std::int64_t number) {
  return raw(fmt::format("{}", number));
}
JsonWriter& JsonWriter::value(double number) {
  return raw(std::isfinite(number) ? fmt::format("{}", number) : "null");
}
JsonWriter& JsonWriter::value(bool flag) {
  return raw(flag ? "true" : "false");
}
JsonWriter& JsonWriter::null() {
  return raw("null");
}

JsonWriter& JsonWriter::raw(std::string_view json) {
  before_value();
  text_ += json;
  return *this;
}

Status parse_json(std::string_view text, std::size_t depth_max, JsonHandler& handler) {
  if (auto nul = text.find('\0'); nul != std::string_view::npos)  // nlohmann takes it for the end of the text
    return Error{Errc::invalid, fmt::format("not JSON at byte {}: expected text, got NUL", nul)};
  Sax sax(handler, depth_max);
  try {
    if (nlohmann::json::sax_parse(text.begin(), text.end(), &sax)) return {};
  } catch (const std::exception& error) {  // nlohmann throws for numbers out of range
    return Error{Errc::invalid, fmt::format("not JSON: {}", printable(error.what()))};
  }
  Status status = sax.status();
  if (status.ok()) return Error{Errc::invalid, "not JSON"};
  return status;
}

}  // namespace weft
