#include "base/json_value.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "base/json.h"
#include "base/text.h"

namespace weft {
namespace {

// Builds the tree of a document as it is read.
class Builder final : public JsonHandler {
 public:
  explicit Builder(std::size_t values_max) : left_(values_max) {}

  JsonValue take() { return std::move(root_); }

  Status begin_object() override { return open(true); }
  Status begin_array() override { return open(false); }
  Status end_array() override {
    JsonValue whole{std::move(open_.back().items)};
    open_.pop_back();
    return put(std::move(whole));
  }
  Status end_object() override {
    JsonValue::Object members = std::move(open_.back().members);
    open_.pop_back();
    auto by_name = [](const auto& a, const auto& b) { return a.name < b.name; };
    std::stable_sort(members.begin(), members.end(), by_name);
    auto same = std::adjacent_find(members.begin(), members.end(),
                                   [](const auto& a, const auto& b) { return a.name == b.name; });
    if (same != members.end())
      return Error{Errc::invalid, fmt::format("JSON: the member \"{}\" is there twice", printable(same->name))};
    return put(JsonValue{std::move(members)});
  }
  Status key(std::string_view name) override {
    open_.back().name = name;
    return {};
  }
  Status text(std::string_view value) override { return scalar(JsonValue{std::string(value)}); }
  Status number(std::uint64_t value) override { return scalar(JsonValue{value}); }
  Status negative(std::int64_t value) override { return scalar(JsonValue{value}); }
  Status real(double value) override { return scalar(JsonValue{value}); }
  Status boolean(bool value) override { return scalar(JsonValue{value}); }
  Status null() override { return scalar(JsonValue{}); }

 private:
  // An array or object whose end was not read yet.
  struct Open {
    bool object = false;
    std::string name;  // name of the next member
    JsonValue::Array items;
    JsonValue::Object members;
  };

  Status count() {
    if (left_-- > 0) return {};
    return Error{Errc::invalid, "JSON: too many values"};
  }
  Status open(bool object) {
    WEFT_CHECK(count());
    open_.push_back({object, {}, {}, {}});
    return {};
  }
  Status scalar(JsonValue value) {
    WEFT_CHECK(count());
    return put(std::move(value));
  }
  Status put(JsonValue value) {
    if (open_.empty())
      root_ = std::move(value);
    else if (open_.back().object)
      open_.back().members.push_back({std::move(open_.back().name), std::move(value)});
    else
      open_.back().items.push_back(std::move(value));
    return {};
  }

  std::size_t left_;
  std::vector<Open> open_;
  JsonValue root_;
};

}  // namespace

Error unexpected(std::string_view name, std::string_view expected, const JsonValue* got) {
  return Error{Errc::invalid, fmt::format("\"{}\": expected {}, got {}", printable(name), expected,
                                          got == nullptr ? "nothing" : got->kind())};
}

Result<JsonValue> JsonValue::parse(std::string_view text, const JsonBounds& bounds) {
  Builder builder(bounds.values_max);
  WEFT_CHECK(parse_json(text, bounds.depth_max, builder));
  return builder.take();
}

std::string_view JsonValue::kind() const {
  constexpr std::array<std::string_view, 8> kKinds = {
      "null",    "a truth value", "a number", "a negative number", "a number with a fraction",
      kJsonText, "an array",      "an object"};
  return kKinds.at(value_.index());
}

const JsonValue* JsonValue::find(std::string_view name) const {
  const Object* members = object();
  if (members == nullptr) return nullptr;
  auto at = std::lower_bound(members->begin(), members->end(), name,
                             [](const Member& member, std::string_view wanted) { return member.name < wanted; });
  return at != members->end() && at->name == name ? &at->value : nullptr;
}

template <class T>
Result<T> JsonValue::member(std::string_view name, std::string_view what) const {
  const JsonValue* found = find(name);
  const T* value = found == nullptr ? nullptr : std::get_if<T>(&found->value_);
  if (value == nullptr) return unexpected(name, what, found);
  return *value;
}

Result<std::string> JsonValue::text(std::string_view name) const {
  return member<std::string>(name, kJsonText);
}

Result<std::uint64_t> JsonValue::number(std::string_view name) const {
  return member<std::uint64_t>(name, kJsonNumber);
}

Result<bool> JsonValue::flag(std::string_view name) const {
  return member<bool>(name, kJsonFlag);
}

Result<std::uint64_t> JsonValue::number_or(std::string_view name, std::uint64_t otherwise) const {
  const JsonValue* found = find(name);
  return found == nullptr || found->is_null() ? Result<std::uint64_t>(otherwise) : number(name);
}

void write_json(JsonWriter& json, const JsonValue& value) {
  if (const auto* members = value.object()) {
    json.begin_object();
    for (const auto& [name, member] : *members) {
      json.key(name);
      write_json(json, member);
    }
    json.end_object();
  } else if (const auto* items = value.array()) {
    json.begin_array();
    for (const JsonValue& item : *items) write_json(json, item);
    json.end_array();
  } else if (const auto* text = value.text()) {
    json.value(*text);
  } else if (const auto* number = value.number()) {
    json.value(*number);
  } else if (const auto* negative = value.negative()) {
    json.value(*negative);
  } else if (const auto* fraction = value.fraction()) {
    json.value(*fraction);
  } else if (const auto* flag = value.flag()) {
    json.value(*flag);
  } else {
    json.null();
  }
}

}  // namespace weft
