// FlatBuffers helpers of the codecs of rows and events. Included by codec .cc files only.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <flatbuffers/flatbuffers.h>
#include <fmt/core.h>

#include "base/limits.h"
#include "diskformat/uuid.h"
#include "records_generated.h"
#include "weft/content.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft::flat {

using Builder = flatbuffers::FlatBufferBuilder;
template <class T>
using Offset = flatbuffers::Offset<T>;

template <class Table>
std::vector<std::byte> finish(Builder& builder, Offset<Table> root) {
  builder.Finish(root);
  auto bytes = std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize()));
  return {bytes.begin(), bytes.end()};
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

inline std::string text(const flatbuffers::String* string) {
  return string == nullptr ? std::string() : string->str();
}

inline records::Digest pack(const Digest& digest) {
  return records::Digest(flatbuffers::span<const std::uint8_t, 32>(digest.bytes));
}

inline Digest unpack(const records::Digest& digest) {
  Digest out;
  std::copy(digest.bytes()->begin(), digest.bytes()->end(), out.bytes.begin());
  return out;
}

// Nothing if `text` is no uuid, as "" is.
inline std::optional<records::Uuid> pack_uuid(std::string_view text) {
  std::optional<Uuid> uuid = parse_uuid(text);
  return uuid ? std::optional(records::Uuid(uuid->high, uuid->low)) : std::nullopt;
}

inline std::string unpack_uuid(const records::Uuid* uuid) {
  return uuid == nullptr ? std::string() : uuid_text({uuid->high(), uuid->low()});
}

template <class Struct>
const Struct* pointer(const std::optional<Struct>& value) {
  return value ? &*value : nullptr;
}

inline std::vector<std::uint64_t> numbers(const flatbuffers::Vector<std::uint64_t>* vector) {
  if (vector == nullptr) return {};
  return {vector->begin(), vector->end()};
}

inline auto pack(Builder& builder, const std::vector<Range>& runs) {
  std::vector<records::Numbers> out;
  for (const Range& run : runs) out.emplace_back(run.offset, run.length);
  return builder.CreateVectorOfStructs(out);
}

inline std::vector<Range> ranges(const flatbuffers::Vector<const records::Numbers*>* vector) {
  std::vector<Range> runs;
  if (vector == nullptr) return runs;
  for (const records::Numbers* run : *vector) runs.push_back({run->first(), run->count()});
  return runs;
}

using TextPairs = std::vector<std::pair<std::string, std::string>>;

inline auto pack(Builder& builder, const TextPairs& pairs) {
  std::vector<Offset<records::Pair>> out;
  for (const auto& [key, value] : pairs)
    out.push_back(records::CreatePair(builder, builder.CreateString(key), builder.CreateString(value)));
  return builder.CreateVector(out);
}

inline auto pack(Builder& builder, const std::vector<ParentRef>& parents) {
  std::vector<Offset<records::Parent>> out;
  out.reserve(parents.size());
  for (const ParentRef& parent : parents)
    out.push_back(records::CreateParent(builder, builder.CreateString(parent.model), parent.number, parent.declared,
                                        parent.same_tensors, parent.same_bytes, parent.id));
  return builder.CreateVector(out);
}

inline auto pack(Builder& builder, const std::vector<std::string>& texts) {
  return builder.CreateVectorOfStrings(texts);
}

inline TextPairs unpack(const flatbuffers::Vector<Offset<records::Pair>>* pairs) {
  TextPairs out;
  if (pairs == nullptr) return out;
  for (const records::Pair* pair : *pairs) out.emplace_back(text(pair->key()), text(pair->value()));
  return out;
}

inline std::vector<ParentRef> unpack(const flatbuffers::Vector<Offset<records::Parent>>* parents) {
  std::vector<ParentRef> out;
  if (parents == nullptr) return out;
  for (const records::Parent* parent : *parents)
    out.push_back({text(parent->model()), parent->number(), parent->declared(), parent->same_tensors(),
                   parent->same_bytes(), parent->id()});
  return out;
}

inline std::vector<std::string> unpack(const flatbuffers::Vector<Offset<flatbuffers::String>>* texts) {
  std::vector<std::string> out;
  if (texts == nullptr) return out;
  for (const flatbuffers::String* one : *texts) out.push_back(text(one));
  return out;
}

}  // namespace weft::flat
