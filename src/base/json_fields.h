// The members of a JSON object that one program writes and another reads, listed once for both. A message M has
//   void fields(JsonFields& f, M& m) { f("name", m.name)("size", m.size, kSizeMax); }
// in its namespace; encode_fields() and decode_fields() do the rest. The input is hostile: Errc::invalid names a member
// that is missing, of another kind or above its bound.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/json_value.h"
#include "weft/content.h"
#include "weft/result.h"

namespace weft {

class JsonFields {
 public:
  // The members of an object, by name; or the elements of an array, in the order of the list.
  enum class Form : std::uint8_t { object, row };
  explicit JsonFields(JsonWriter& out, Form form = Form::object) : out_(&out), form_(form) {}
  explicit JsonFields(const JsonValue& in, Form form = Form::object) : in_(&in), form_(form) {}

  JsonFields& operator()(std::string_view name, std::string& value, std::size_t bytes_max = SIZE_MAX);
  JsonFields& operator()(std::string_view name, std::uint64_t& value, std::uint64_t max = UINT64_MAX);
  JsonFields& operator()(std::string_view name, std::uint32_t& value, std::uint32_t max = UINT32_MAX);
  JsonFields& operator()(std::string_view name, double& value);
  JsonFields& operator()(std::string_view name, bool& value);
  JsonFields& operator()(std::string_view name, Digest& value);
  JsonFields& operator()(std::string_view name, std::vector<std::string>& value);
  template <class M>
  requires std::is_class_v<M> JsonFields& operator()(std::string_view name, M& message);
  template <class M>
  JsonFields& operator()(std::string_view name, std::vector<M>& messages, Form form = Form::object);
  template <class T>
  JsonFields& operator()(std::string_view name, std::optional<T>& value);  // absent or null if empty

  JsonFields& refuse(std::string message);  // for members that contradict each other
  // Returns the first refusal. A row with more elements than there are fields is refused too.
  Status status() const;

 private:
  const JsonValue* next(std::string_view name);
  JsonWriter& key(std::string_view name);
  template <class T>
  JsonFields& scalar(std::string_view name, std::string_view expected, const T* (JsonValue::*kind)() const, T& value);
  const JsonValue::Array& items(std::string_view name);
  template <class M>
  void item(M& message, Form form, const JsonValue* read);

  JsonWriter* const out_ = nullptr;
  const JsonValue* const in_ = nullptr;  // null: this object writes
  const Form form_;
  std::size_t row_at_ = 0;
  std::optional<Error> refused_;
};

// Writes only the members, into an object or a row that has begun.
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

template <class M>
void JsonFields::item(M& message, Form form, const JsonValue* read) {
  static const JsonValue nothing;
  if (in_ == nullptr) {
    form == Form::row ? out_->begin_array() : out_->begin_object();
    write_fields(*out_, message, form);
    form == Form::row ? out_->end_array() : out_->end_object();
  } else if (auto got = decode_fields<M>(read == nullptr ? nothing : *read, form); got.ok()) {
    message = std::move(got).value();
  } else {
    refuse(got.error().message);
  }
}

template <class M>
requires std::is_class_v<M> JsonFields& JsonFields::operator()(std::string_view name, M& message) {
  if (in_ == nullptr) key(name);
  item(message, Form::object, in_ == nullptr ? nullptr : next(name));
  return *this;
}

template <class M>
JsonFields& JsonFields::operator()(std::string_view name, std::vector<M>& messages, Form form) {
  if (in_ == nullptr) {
    key(name).begin_array();
    for (M& message : messages) item(message, form, nullptr);
    out_->end_array();
    return *this;
  }
  for (const JsonValue& read : items(name)) item(messages.emplace_back(), form, &read);
  return *this;
}

template <class T>
JsonFields& JsonFields::operator()(std::string_view name, std::optional<T>& value) {
  if (in_ != nullptr) {
    const JsonValue* found = in_->find(name);
    value.reset();
    if (found != nullptr && !found->is_null()) value.emplace();
  }
  return value ? (*this)(name, *value) : *this;
}

}  // namespace weft
