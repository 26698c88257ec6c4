#include "base/json_fields.h"

#include <fmt/core.h>

#include "base/text.h"

namespace weft {

JsonFields& JsonFields::refuse(std::string message) {
  if (!refused_) refused_ = Error{Errc::invalid, std::move(message)};
  return *this;
}

Status JsonFields::status() const {
  if (refused_) return *refused_;
  if (form_ == Form::object || (in_->array() != nullptr && in_->array()->size() == row_at_)) return {};
  return Error{Errc::invalid, fmt::format("expected an array of {}, got {}", row_at_, in_->kind())};
}

const JsonValue* JsonFields::next(std::string_view name) {
  if (form_ == Form::object) return in_->find(name);
  const auto* row = in_->array();
  const std::size_t at = row_at_++;
  return row != nullptr && at < row->size() ? &(*row)[at] : nullptr;
}

JsonWriter& JsonFields::key(std::string_view name) {
  return form_ == Form::object ? out_->key(name) : *out_;
}

template <class T>
JsonFields& JsonFields::scalar(std::string_view name, std::string_view expected, const T* (JsonValue::*kind)() const,
                               T& value) {
  if (in_ == nullptr) return key(name).value(value), *this;
  const JsonValue* found = next(name);
  const T* got = found == nullptr ? nullptr : (found->*kind)();
  if (got == nullptr) return refuse(unexpected(name, expected, found).message);
  value = *got;
  return *this;
}

const JsonValue::Array& JsonFields::items(std::string_view name) {
  static const JsonValue::Array none;
  const JsonValue* found = next(name);
  if (found != nullptr && found->array() != nullptr) return *found->array();
  refuse(unexpected(name, "an array", found).message);
  return none;
}

JsonFields& JsonFields::operator()(std::string_view name, std::string& value, std::size_t bytes_max) {
  scalar(name, kJsonText, &JsonValue::text, value);
  if (value.size() <= bytes_max) return *this;
  return refuse(fmt::format("\"{}\": expected at most {} bytes, got {}", name, bytes_max, value.size()));
}

JsonFields& JsonFields::operator()(std::string_view name, std::uint64_t& value, std::uint64_t max) {
  scalar(name, kJsonNumber, &JsonValue::number, value);
  return value <= max ? *this : refuse(fmt::format("\"{}\": expected at most {}, got {}", name, max, value));
}

JsonFields& JsonFields::operator()(std::string_view name, std::uint32_t& value, std::uint32_t max) {
  std::uint64_t wide = value;
  (*this)(name, wide, max);
  value = static_cast<std::uint32_t>(wide);
  return *this;
}

JsonFields& JsonFields::operator()(std::string_view name, bool& value) {
  return scalar(name, kJsonFlag, &JsonValue::flag, value);
}

// Accepts a whole number too, because a value without a fraction is written as one.
JsonFields& JsonFields::operator()(std::string_view name, double& value) {
  if (in_ == nullptr) return key(name).value(value), *this;
  const JsonValue* found = next(name);
  if (const auto* whole = found == nullptr ? nullptr : found->number()) {
    value = static_cast<double>(*whole);
  } else if (const auto* real = found == nullptr ? nullptr : found->fraction()) {
    value = *real;
  } else {
    refuse(unexpected(name, "a number without sign", found).message);
  }
  return *this;
}

JsonFields& JsonFields::operator()(std::string_view name, Digest& value) {
  std::string hex = to_hex(value);
  (*this)(name, hex);
  const auto digest = digest_from_hex(hex);
  value = digest.value_or(value);
  return digest ? *this
                : refuse(fmt::format("\"{}\": expected 64 hexadecimal digits, got {}", name, printable(hex, 80)));
}

JsonFields& JsonFields::operator()(std::string_view name, std::vector<std::string>& value) {
  if (in_ == nullptr) {
    key(name).begin_array();
    for (const std::string& text : value) out_->value(text);
    out_->end_array();
    return *this;
  }
  for (const JsonValue& item : items(name)) {
    if (item.text() == nullptr) return refuse(unexpected(name, "an array of texts", &item).message);
    value.push_back(*item.text());
  }
  return *this;
}

}  // namespace weft
