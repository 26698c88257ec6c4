// The members of a JSON object that one program writes and another reads, listed once for both. A message M has
//   void fields(JsonFields& fields, M& message) { fields("size", message.size, kSizeMax); … }
// beside it in its namespace; encode_fields() and decode_fields() do the rest. What is read is hostile: a member that is
// missing, of another kind or above its bound is Errc::invalid, and names itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/json_value.h"
#include "weft/content.h"
#include "weft/result.h"

namespace weft {

class JsonFields {
 public:
  // The members of an object, by name; or the elements of an array, in the order of the list: texts and whole numbers.
  enum class Form : std::uint8_t { object, row };
  explicit JsonFields(JsonWriter& out, Form form = Form::object) : out_(&out), form_(form) {}
  explicit JsonFields(const JsonValue& in, Form form = Form::object) : in_(&in), form_(form) {}

  void operator()(std::string_view name, std::string& value, std::size_t bytes_max = SIZE_MAX);
  void operator()(std::string_view name, std::uint64_t& value, std::uint64_t max = UINT64_MAX);
  void operator()(std::string_view name, std::uint32_t& value, std::uint32_t max = UINT32_MAX);
  void operator()(std::string_view name, double& value);
  void operator()(std::string_view name, bool& value);
  void operator()(std::string_view name, Digest& value);
  void operator()(std::string_view name, std::vector<std::string>& value);
  // Left out, or null, when there is none.
  template <class T>
  void operator()(std::string_view name, std::optional<T>& value);
  template <class T>
  void operator()(std::string_view name, std::vector<T>& value, Form form = Form::object);

  bool reading() const { return in_ != nullptr; }
  void refuse(std::string message);  // what the members say together cannot be
  // The first refusal; an array that is read as a row and has more elements is one.
  Status status() const;

 private:
  const JsonValue* next(std::string_view name);
  JsonWriter& key(std::string_view name);
  template <class T>
  void member(std::string_view name, std::string_view expected, const T* (JsonValue::*kind)() const, T& value);

  JsonWriter* const out_ = nullptr;
  const JsonValue* const in_ = nullptr;
  const Form form_;
  std::size_t row_at_ = 0;
  std::optional<Error> refused_;
};

// The members alone: of an object or an array that has begun.
template <class M>
void write_fields(JsonWriter& json, M message, JsonFields::Form form = JsonFields::Form::object) {
  JsonFields list(json, form);
  fields(list, message);
}

template <class M>
std::string encode_fields(const M& message) {
  JsonWriter json;
  json.begin_object();
  write_fields(json, message);
  return json.end_object().take();
}

template <class M>
Result<M> decode_fields(const JsonValue& json, JsonFields::Form form = JsonFields::Form::object) {
  M message;
  JsonFields list(json, form);
  fields(list, message);
  WEFT_CHECK(list.status());
  return message;
}

template <class T>
void JsonFields::operator()(std::string_view name, std::optional<T>& value) {
  if (reading()) {
    const JsonValue* found = in_->find(name);
    value.reset();
    if (found != nullptr && !found->is_null()) value.emplace();
  }
  if (value) (*this)(name, *value);
}

template <class T>
void JsonFields::operator()(std::string_view name, std::vector<T>& value, Form form) {
  if (!reading()) {
    key(name).begin_array();
    for (T& item : value) {
      form == Form::row ? out_->begin_array() : out_->begin_object();
      write_fields(*out_, item, form);
      form == Form::row ? out_->end_array() : out_->end_object();
    }
    out_->end_array();
    return;
  }
  const JsonValue::Array none;
  const JsonValue* found = next(name);
  if (found == nullptr || found->array() == nullptr)
    return refuse(unexpected(name, "an array", found).message);
  for (const JsonValue& item : *found->array()) {
    auto read = decode_fields<T>(item, form);
    if (!read.ok()) return refuse(read.error().message);
    value.push_back(std::move(read).value());
  }
}

}  // namespace weft
