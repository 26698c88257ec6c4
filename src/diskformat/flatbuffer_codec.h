// Codec of the records that are FlatBuffers. One function writes and reads a type, so that it lists the fields once:
//   template <class F> void fields(F& f, TagRow& m) { using T = records::Tag; f(T::VT_NAME, m.name)(T::VT_INO, m.ino);
//   }
// in namespace weft. Texts and lists lie in the buffer in the order of the calls. Included by codec .cc files only.
#pragma once

#include <algorithm>
#include <concepts>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <flatbuffers/flatbuffers.h>
#include <fmt/core.h>

#include "diskformat/uuid.h"
#include "records_generated.h"
#include "weft/content.h"
#include "weft/names.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft::flat {

using Builder = flatbuffers::FlatBufferBuilder;
using Field = flatbuffers::voffset_t;
template <class T>
using Offset = flatbuffers::Offset<T>;
template <class T>
using List = flatbuffers::Vector<T>;

// Types with the memory layout of a struct of the schemas.
template <class T>
concept Struct = std::same_as<T, Digest> || std::same_as<T, ContentId> || std::same_as<T, Uuid> ||
    std::same_as<T, Range> || std::same_as<T, records::Gap>;
static_assert(sizeof(Digest) == sizeof(records::Digest) && sizeof(ContentId) == sizeof(records::ContentId));
static_assert(sizeof(Uuid) == sizeof(records::Uuid) && sizeof(Range) == sizeof(records::Numbers));

template <class T>
concept Scalar = std::integral<T> || std::is_enum_v<T>;
template <Scalar T>
using Stored = std::conditional_t<sizeof(T) == 1, std::uint8_t, T>;

// Writes one table in the byte order of the generated functions: wide fields first, and the last of equal width first.
class Writer {
 public:
  static constexpr bool kReads = false;
  explicit Writer(Builder& builder) : builder_(builder) {}

  template <Scalar T>
  Writer& operator()(Field field, T value, T absent = {}) {
    if (value == absent) return *this;
    return add(sizeof(T), field, static_cast<Stored<T>>(value));
  }
  template <Struct T>
  Writer& operator()(Field field, const T& value) {
    return add(sizeof(flatbuffers::uoffset_t), field, value);
  }
  template <Struct T>
  Writer& operator()(Field field, const std::optional<T>& value) {
    return value ? (*this)(field, *value) : *this;
  }
  Writer& operator()(Field field, const std::string& text) { return offset(field, builder_.CreateString(text)); }
  template <class T>
  Writer& operator()(Field field, const std::vector<T>& list) {
    if constexpr (Struct<T>)
      return offset(field, builder_.CreateVectorOfStructs(list));
    else if constexpr (Scalar<T>)
      return offset(field, builder_.CreateVector(list));
    else if constexpr (std::same_as<T, std::string>)
      return offset(field, builder_.CreateVectorOfStrings(list));
    else
      return tables(field, list);
  }
  template <class T>
  Writer& table(Field field, T& value);
  template <class T>
  Writer& table_if_any(Field field, T& value) {
    return value.empty() ? *this : table(field, value);
  }
  Writer& text_if_any(Field field, const std::string& text) { return text.empty() ? *this : (*this)(field, text); }
  Writer& uuid(Field field, const std::string& text) { return (*this)(field, parse_uuid(text)); }
  Writer& dataset(Field field, VersionKind kind) { return (*this)(field, kind == VersionKind::dataset); }

  Offset<void> finish() {
    std::ranges::sort(fields_, std::greater(), [](const Added& one) { return std::pair(one.width, one.field); });
    const auto start = builder_.StartTable();
    for (const Added& one : fields_)
      std::visit([this, field = one.field](const auto& value) { put(field, value); }, one.value);
    return Offset<void>(builder_.EndTable(start));
  }

 private:
  using Value = std::variant<std::uint8_t, std::uint32_t, std::uint64_t, Offset<void>, Digest, ContentId, Uuid>;
  struct Added {
    std::size_t width;
    Field field;
    Value value;
  };

  Writer& add(std::size_t width, Field field, const Value& value) {
    fields_.push_back({width, field, value});
    return *this;
  }
  template <class T>
  Writer& offset(Field field, Offset<T> at) {
    return add(sizeof(flatbuffers::uoffset_t), field, Offset<void>(at.o));
  }
  template <class T>
  Writer& tables(Field field, const std::vector<T>& list);
  template <class T>
  void put(Field field, const T& value) {
    if constexpr (Scalar<T>)
      builder_.AddElement(field, value);
    else if constexpr (Struct<T>)
      builder_.AddStruct(field, &value);
    else
      builder_.AddOffset(field, value);
  }

  Builder& builder_;
  std::vector<Added> fields_;
};

// Reads one table of a verified buffer. A verified buffer may refer to one text or list many times, which no writer
// does. So all texts and lists together have at most `left` bytes, those of the buffer; else decoding takes memory out
// of proportion.
class Reader {
 public:
  static constexpr bool kReads = true;
  Reader(const flatbuffers::Table& table, std::size_t& left) : table_(table), left_(left) {}
  // False if a struct, or a table within this one, is missing, or if texts and lists have more bytes than the buffer.
  bool whole() const { return whole_; }

  template <Scalar T>
  Reader& operator()(Field field, T& value, T absent = {}) {
    const Stored<T> got = table_.GetField(field, static_cast<Stored<T>>(absent));
    if constexpr (std::same_as<T, bool>)
      value = got != 0;
    else
      value = static_cast<T>(got);
    return *this;
  }
  template <Struct T>
  Reader& operator()(Field field, T& value) {
    const auto* got = table_.GetStruct<const T*>(field);
    whole_ = whole_ && got != nullptr;
    if (got != nullptr) value = *got;
    return *this;
  }
  template <Struct T>
  Reader& operator()(Field field, std::optional<T>& value) {
    const auto* got = table_.GetStruct<const T*>(field);
    value = got == nullptr ? std::nullopt : std::optional(*got);
    return *this;
  }
  Reader& operator()(Field field, std::string& text) {
    const auto* got = table_.GetPointer<const flatbuffers::String*>(field);
    text = text_of(got);
    return *this;
  }
  template <class T>
  Reader& operator()(Field field, std::vector<T>& list) {
    if constexpr (Struct<T>)
      each<const T*>(field, list, [](const T* one) { return *one; });
    else if constexpr (Scalar<T>)
      each<T>(field, list, [](T one) { return one; });
    else if constexpr (std::same_as<T, std::string>)
      each<Offset<flatbuffers::String>>(field, list, [this](const auto* one) { return text_of(one); });
    else
      each<Offset<flatbuffers::Table>>(field, list, [this](const auto* one) { return this->template read<T>(*one); });
    return *this;
  }
  template <class T>
  Reader& table(Field field, T& value) {
    const auto* got = table_.GetPointer<const flatbuffers::Table*>(field);
    whole_ = whole_ && got != nullptr;
    if (got != nullptr) value = read<T>(*got);
    return *this;
  }
  template <class T>
  Reader& table_if_any(Field field, T& value) {
    const auto* got = table_.GetPointer<const flatbuffers::Table*>(field);
    if (got != nullptr) value = read<T>(*got);
    return *this;
  }
  Reader& text_if_any(Field field, std::string& text) { return (*this)(field, text); }
  // "" if there is none.
  Reader& uuid(Field field, std::string& text) {
    std::optional<Uuid> uuid;
    (*this)(field, uuid);
    text = uuid ? uuid_text(*uuid) : std::string();
    return *this;
  }
  Reader& dataset(Field field, VersionKind& kind) {
    kind = table_.GetField<std::uint8_t>(field, 0) != 0 ? VersionKind::dataset : VersionKind::model;
    return *this;
  }

 private:
  // False if the buffer cannot have so many further bytes.
  bool take(std::size_t bytes) {
    whole_ = whole_ && bytes <= left_;
    if (whole_) left_ -= bytes;
    return whole_;
  }
  std::string text_of(const flatbuffers::String* text) {
    return text != nullptr && take(text->size()) ? text->str() : std::string();
  }
  template <class Item, class T, class Get>
  void each(Field field, std::vector<T>& list, Get get) {
    list.clear();
    const auto* got = table_.GetPointer<const List<Item>*>(field);
    if (got == nullptr || !take(got->size() * flatbuffers::IndirectHelper<Item>::element_stride)) return;
    list.reserve(got->size());
    for (auto&& one : *got) list.push_back(get(one));
  }
  template <class T>
  T read(const flatbuffers::Table& table);

  const flatbuffers::Table& table_;
  std::size_t& left_;
  bool whole_ = true;
};

using TextPair = std::pair<std::string, std::string>;
template <class F>
void fields(F& f, TextPair& m) {
  f(records::Pair::VT_VALUE, m.second)(records::Pair::VT_KEY, m.first);
}
template <class F>
void fields(F& f, ParentRef& m) {
  using T = records::Parent;
  f(T::VT_MODEL, m.model)(T::VT_NUMBER, m.number)(T::VT_DECLARED, m.declared, true);
  f(T::VT_SAME_TENSORS, m.same_tensors)(T::VT_SAME_BYTES, m.same_bytes)(T::VT_ID, m.id);
}

template <class F>
void fields(F& f, Provenance& m) {
  using T = records::Source;
  f.text_if_any(T::VT_ENDPOINT, m.endpoint).text_if_any(T::VT_REPOSITORY, m.repository);
  f.text_if_any(T::VT_REVISION, m.revision).text_if_any(T::VT_COMMIT, m.commit).text_if_any(T::VT_ACCESS, m.access);
  f(T::VT_LISTED_NS, m.listed_ns)(T::VT_LEFT_OUT, m.left_out);
  if (F::kReads || !m.urls.empty()) f(T::VT_URLS, m.urls);
}

// A writer does not change `row`.
template <class T>
Offset<void> write_table(Builder& builder, const T& row) {
  Writer writer(builder);
  fields(writer, const_cast<T&>(row));
  return writer.finish();
}

template <class T>
Writer& Writer::table(Field field, T& value) {
  return offset(field, write_table(builder_, value));
}

template <class T>
Writer& Writer::tables(Field field, const std::vector<T>& list) {
  std::vector<Offset<void>> at;
  at.reserve(list.size());
  for (const T& one : list) at.push_back(write_table(builder_, one));
  return offset(field, builder_.CreateVector(at));
}

template <class T>
T Reader::read(const flatbuffers::Table& table) {
  T value;
  Reader reader(table, left_);
  fields(reader, value);
  whole_ = whole_ && reader.whole();
  return value;
}

template <class Table>
std::vector<std::byte> finish(Builder& builder, Offset<Table> root) {
  builder.Finish(root);
  auto bytes = std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize()));
  return {bytes.begin(), bytes.end()};
}

template <class T>
std::vector<std::byte> encode(const T& row) {
  Builder builder;
  return finish(builder, write_table(builder, row));
}

inline Error bad(std::string_view where, std::string_view what) {
  return Error{Errc::corrupt, fmt::format("{}: {}; run `weft fsck --rebuild`", where, what)};
}

// Returns the verified root of a payload; nullptr if the bytes are no such table.
template <class Table>
const Table* root(std::span<const std::byte> payload) {
  flatbuffers::Verifier verifier(reinterpret_cast<const std::uint8_t*>(payload.data()), payload.size());
  if (!verifier.VerifyBuffer<Table>(nullptr)) return nullptr;
  return flatbuffers::GetRoot<Table>(payload.data());
}

// Reads `row` from a payload. Returns false if the payload is no such table, lacks a required struct, or refers to a
// text or a list more than once.
template <class Table, class T>
bool decode(std::span<const std::byte> payload, T& row) {
  if (root<Table>(payload) == nullptr) return false;
  std::size_t left = payload.size();
  Reader reader(*flatbuffers::GetRoot<flatbuffers::Table>(payload.data()), left);
  fields(reader, row);
  return reader.whole();
}

}  // namespace weft::flat
