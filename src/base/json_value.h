// A JSON document as a tree, for messages and answers of other programs: small, bounded, every byte hostile. Big
// documents (headers of models) are read with JsonHandler instead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "weft/result.h"

namespace weft {

struct JsonBounds {
  std::size_t depth_max = 32;
  std::size_t values_max = 65'536;  // of the whole tree, names of members not counted
};

class JsonValue {
 public:
  struct Member;
  using Array = std::vector<JsonValue>;
  using Object = std::vector<Member>;  // by name

  JsonValue() = default;  // null
  template <class T>
  explicit JsonValue(T value) : value_(std::move(value)) {}

  // Errc::invalid for what parse_json() refuses, for an object with two members of one name, and above the bounds.
  static Result<JsonValue> parse(std::string_view text, const JsonBounds& bounds = {});

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  bool is_object() const { return std::holds_alternative<Object>(value_); }
  // Null when the value is of another kind.
  const std::string* text() const { return std::get_if<std::string>(&value_); }
  const std::uint64_t* number() const { return std::get_if<std::uint64_t>(&value_); }
  const std::int64_t* negative() const { return std::get_if<std::int64_t>(&value_); }
  const double* fraction() const { return std::get_if<double>(&value_); }
  const bool* flag() const { return std::get_if<bool>(&value_); }
  const Array* array() const { return std::get_if<Array>(&value_); }
  const Object* object() const { return std::get_if<Object>(&value_); }

  // A member of an object; null when this is none, or has none of that name.
  const JsonValue* find(std::string_view name) const;

  // A member that must be there and of that kind: Errc::invalid names it, what was expected and what was got. Numbers
  // are without sign and fraction.
  Result<std::string> text(std::string_view name) const;
  Result<std::uint64_t> number(std::string_view name) const;
  Result<bool> flag(std::string_view name) const;
  // The same, and the default where it is not there (null counts as not there).
  Result<std::uint64_t> number_or(std::string_view name, std::uint64_t otherwise) const;

  // "an object", "a text", …
  std::string_view kind() const;

 private:
  template <class T>
  Result<T> member(std::string_view name, std::string_view expected) const;
  std::variant<std::monostate, bool, std::uint64_t, std::int64_t, double, std::string, Array, Object> value_;
};

struct JsonValue::Member {
  std::string name;
  JsonValue value;
};

// Errc::invalid: names a member, what was expected and what was got (null: nothing).
Error unexpected(std::string_view name, std::string_view expected, const JsonValue* got);
inline constexpr std::string_view kJsonText = "a text";
inline constexpr std::string_view kJsonNumber = "a number without sign and fraction";
inline constexpr std::string_view kJsonFlag = "true or false";

class JsonWriter;
// The same document; members by name.
void write_json(JsonWriter& json, const JsonValue& value);

}  // namespace weft
