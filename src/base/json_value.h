// A JSON document as a tree, for messages and answers of other programs: small, bounded, every byte hostile. Large
// documents (headers of models) are read with JsonHandler.
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
  std::size_t values_max = 65'536;  // in the whole tree, without the names of members
};

class JsonValue {
 public:
  struct Member;
  using Array = std::vector<JsonValue>;
  using Object = std::vector<Member>;  // by name

  JsonValue() = default;  // null
  template <class T>
  explicit JsonValue(T value) : value_(std::move(value)) {}

  // Errc::invalid if parse_json() refuses the text, if an object has two members of one name, or above the bounds.
  static Result<JsonValue> parse(std::string_view text, const JsonBounds& bounds = {});

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  bool is_object() const { return std::holds_alternative<Object>(value_); }
  // Each returns null if the value is of another kind.
  const std::string* text() const { return std::get_if<std::string>(&value_); }
  const std::uint64_t* number() const { return std::get_if<std::uint64_t>(&value_); }
  const std::int64_t* negative() const { return std::get_if<std::int64_t>(&value_); }
  const double* fraction() const { return std::get_if<double>(&value_); }
  const bool* flag() const { return std::get_if<bool>(&value_); }
  const Array* array() const { return std::get_if<Array>(&value_); }
  const Object* object() const { return std::get_if<Object>(&value_); }

  // Returns a member of an object. Returns null if this is no object, or if it has no member of that name.
  const JsonValue* find(std::string_view name) const;

  // Returns a required member. Errc::invalid names the member, the expected kind and the actual one. Numbers have no
  // sign and no fraction.
  Result<std::string> text(std::string_view name) const;
  Result<std::uint64_t> number(std::string_view name) const;
  Result<bool> flag(std::string_view name) const;
  // As number(), with a default for a member that is absent or null.
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

// Errc::invalid: names a member, the expected kind and the actual one (null: absent).
Error unexpected(std::string_view name, std::string_view expected, const JsonValue* got);
inline constexpr std::string_view kJsonText = "a text";
inline constexpr std::string_view kJsonNumber = "a number without sign and fraction";
inline constexpr std::string_view kJsonFlag = "true or false";

class JsonWriter;
// Writes the document, with the members of objects sorted by name.
void write_json(JsonWriter& json, const JsonValue& value);

}  // namespace weft
