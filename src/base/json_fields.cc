#include "base/json_fields.h"

#include <fmt/core.h>

#include "base/text.h"

namespace weft {

void JsonFields::refuse(std::string message) {
  if (!refused_) refused_ = Error{Errc::invalid, std::move(message)};
}

Status JsonFields::status() const {
  if (refused_) return *refused_;
  if (!reading() || form_ == Form::object) return {};
  const auto* row = in_->array();
  if (row != nullptr && row->size() == row_at_) return {};
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
void JsonFields::member(std::string_view name, std::string_view expected, const T* (JsonValue::*kind)() const,
                        T& value) {
  if (!reading()) return static_cast<void>(key(name).value(value));
  const JsonValue* found = next(name);
  const T* got = found == nullptr ? nullptr : (found->*kind)();
  if (got == nullptr) return refuse(unexpected(name, expected, found).message);
  value = *got;
}

void JsonFields::operator()(std::string_view name, std::string& value, std::size_t bytes_max) {
  member(name, kJsonText, &JsonValue::text, value);
  if (value.size() > bytes_max)
    refuse(fmt::format("\"{}\": expected at most {} bytes, got {}", name, bytes_max, value.size()));
}

void JsonFields::operator()(std::string_view name, std::uint64_t& value, std::uint64_t max) {
  member(name, kJsonNumber, &JsonValue::number, value);
  if (value > max) refuse(fmt::format("\"{}\": expected at most {}, got {}", name, max, value));
}

void JsonFields::operator()(std::string_view name, std::uint32_t& value, std::uint32_t max) {
  std::uint64_t wide = value;
  (*this)(name, wide, max);
  value = static_cast<std::uint32_t>(wide);
}

void JsonFields::operator()(std::string_view name, bool& value) {
  member(name, kJsonFlag, &JsonValue::flag, value);
}

void JsonFields::operator()(std::string_view name, double& value) {
  if (!reading()) return static_cast<void>(key(name).value(value));
  const auto got = in_->real(name);
  got.ok() ? static_cast<void>(value = *got) : refuse(got.error().message);
}

void JsonFields::operator()(std::string_view name, Digest& value) {
  std::string hex = to_hex(value);
  (*this)(name, hex);
  const auto digest = digest_from_hex(hex);
  digest ? static_cast<void>(value = *digest)
         : refuse(fmt::format("\"{}\": expected 64 hexadecimal digits, got {}", name, printable(hex, 80)));
}

void JsonFields::operator()(std::string_view name, std::vector<std::string>& value) {
  if (!reading()) {
    key(name).begin_array();
    for (const std::string& text : value) out_->value(text);
    out_->end_array();
    return;
  }
  auto got = in_->texts(name);
  got.ok() ? static_cast<void>(value = std::move(got).value()) : refuse(got.error().message);
}

}  // namespace weft
