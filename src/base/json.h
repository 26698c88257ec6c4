// JSON: a writer that keeps the order and escapes text, and a streaming reader that bounds the depth and reports
// duplicate keys. The only user of nlohmann::json (in the .cc).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/result.h"

namespace weft {

// Writes one JSON value into a string. Calls must nest as JSON does; inside an object each value follows a key().
class JsonWriter {
 public:
  explicit JsonWriter(bool pretty = false) : pretty_(pretty) {}

  JsonWriter& begin_object();
  JsonWriter& end_object();
  JsonWriter& begin_array();
  JsonWriter& end_array();
  JsonWriter& key(std::string_view name);
  JsonWriter& value(std::string_view text);  // bytes that are no UTF-8 become U+FFFD
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(std::uint64_t number);
  JsonWriter& value(std::int64_t number);
  JsonWriter& value(int number) { return value(static_cast<std::int64_t>(number)); }
  JsonWriter& value(double number);
  JsonWriter& value(bool flag);
  JsonWriter& null();
  JsonWriter& raw(std::string_view json);  // one value, already JSON
  template <class T>
  JsonWriter& member(std::string_view name, const T& v) {
    return key(name).value(v);
  }

  const std::string& text() const { return text_; }
  // Returns the text since the last call, so that a long value can be printed piece by piece.
  std::string take() { return std::exchange(text_, {}); }

 private:
  void before_value();
  void newline();
  std::string text_;
  std::vector<bool> has_items_;
  bool pretty_ = false;
  bool after_key_ = false;
};

std::string json_quote(std::string_view text);

// Receives a document in order. A handler returns an Error to stop.
class JsonHandler {
 public:
  virtual ~JsonHandler() = default;
  virtual Status begin_object() = 0;
  virtual Status end_object() = 0;
  virtual Status begin_array() = 0;
  virtual Status end_array() = 0;
  virtual Status key(std::string_view name) = 0;  // duplicates are not filtered
  virtual Status text(std::string_view value) = 0;
  virtual Status number(std::uint64_t value) = 0;
  virtual Status negative(std::int64_t value) = 0;
  virtual Status real(double value) = 0;
  virtual Status boolean(bool value) = 0;
  virtual Status null() = 0;
};

// Errc::invalid with the byte position if the text is not JSON, is not UTF-8, is deeper than `depth_max`, or is
// followed by more than white space. Takes memory for the longest string only.
Status parse_json(std::string_view text, std::size_t depth_max, JsonHandler& handler);

}  // namespace weft
