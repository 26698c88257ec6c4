#include "diskformat/keys.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "base/sha256.h"
#include "diskformat/hash.h"

namespace weft {
namespace {

// Views of literals, so that each name ends with a NUL.
constexpr std::array<std::string_view, kTableCount> kNames = {
    "meta",       "models",       "model_ids", "names",     "dirs",          "versions",     "numbers",
    "tags",       "version_tags", "locals",    "owned",     "blobs",         "holders",      "dead",
    "views",      "inodes",       "children",  "manifests", "architectures", "arch_of",      "arch_versions",
    "arch_items", "hints",        "revisions", "commits",   "packs",         "former_names", "tag_moves"};

template <class Number>
void append(std::string& key, Number value) {
  for (std::size_t shift = sizeof value * 8; shift > 0; shift -= 8)
    key += static_cast<char>(static_cast<std::uint64_t>(value) >> (shift - 8));
}

template <class Number>
Number get(Bytes key, std::size_t offset) {
  if (offset > key.size() || key.size() - offset < sizeof(Number)) return 0;
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof(Number); ++i) value = value << 8U | static_cast<unsigned char>(key[offset + i]);
  return static_cast<Number>(value);
}

void append(std::string& key, const Digest& digest) {
  key.append(reinterpret_cast<const char*>(digest.bytes.data()), digest.bytes.size());
}

}  // namespace

std::string_view table_name(Table table) {
  return kNames[static_cast<std::size_t>(table)];
}

bool keeps_sets(Table table) {
  return table == Table::arch_versions || table == Table::arch_items;
}

std::string key_of(std::uint64_t number) {
  std::string key;
  append(key, number);
  return key;
}

std::string key_of(std::uint64_t first, std::uint64_t second) {
  std::string key = key_of(first);
  append(key, second);
  return key;
}

std::string file_key(VersionId version, std::uint32_t file) {
  std::string key = key_of(version);
  append(key, file);
  return key;
}

std::string tag_key(ModelId model, std::string_view tag) {
  std::string key = key_of(model);
  key += tag;
  return key;
}

std::string version_tag_key(ModelId model, std::uint64_t number, std::string_view tag) {
  std::string key = key_of(model, number);
  key += tag;
  return key;
}

std::string tag_move_key(ModelId model, std::uint64_t sequence, std::string_view tag) {
  return version_tag_key(model, UINT64_MAX - sequence, tag);
}

std::string name_key(std::string_view prefix, std::string_view component) {
  std::string key(prefix);
  key += '\0';
  key += component;
  return key;
}

std::string blob_key(const ContentId& id) {
  std::string key = key_of(id.length);
  append(key, id.root);
  return key;
}

std::string hint_key(std::uint64_t length, std::uint64_t hint) {
  return key_of(length, hint);
}

Digest digest_of(Bytes digest_key) {
  Digest digest;
  std::memcpy(digest.bytes.data(), digest_key.data(), std::min(digest_key.size(), digest.bytes.size()));
  return digest;
}

std::string digest_key(const Digest& digest) {
  std::string key;
  append(key, digest);
  return key;
}

std::string revision_key(ModelId model, const Digest& manifest, VersionId version) {
  std::string key = key_of(model);
  key += digest_key(manifest).substr(0, kRevisionBytes);
  append(key, version);
  return key;
}

std::string commit_key(ModelId model, std::string_view commit, VersionId version) {
  std::string key = key_of(model);
  key += commit;
  append(key, version);
  return key;
}

std::string view_key(const ViewKey& view) {
  std::string whole = blob_key(view.content);
  append(whole, static_cast<std::uint8_t>(view.dtype));
  append(whole, std::uint64_t{view.shape.size()});
  for (std::uint64_t dimension : view.shape) append(whole, dimension);
  whole += view.descr;
  return digest_key(sha256(std::as_bytes(std::span(whole))));
}

std::uint64_t number_at(Bytes key, std::size_t offset) {
  return get<std::uint64_t>(key, offset);
}
std::uint32_t file_at(Bytes key, std::size_t offset) {
  return get<std::uint32_t>(key, offset);
}
ContentId blob_id(Bytes blob_key) {
  ContentId id{blob_length(blob_key), {}};
  if (blob_key.size() == sizeof id.length + id.root.bytes.size())
    std::memcpy(id.root.bytes.data(), blob_key.data() + sizeof id.length, id.root.bytes.size());
  return id;
}

std::uint64_t blob_length(Bytes blob_key) {
  return number_at(blob_key, 0);
}

std::string held_key(std::uint64_t group, const Holder& holder) {
  return key_of(group) + file_key(holder.first, holder.second);
}

Holder holder_at(Bytes held_key) {
  return {number_at(held_key, 8), file_at(held_key, 16)};
}

std::string encode_held(Bytes held_key, std::uint64_t bits) {
  std::string value = key_of(bits);
  append(value, xxh3_64(std::as_bytes(std::span(value)), xxh3_64(std::as_bytes(std::span(held_key)))));
  return value;
}

std::optional<std::uint64_t> decode_held(Bytes held_key, Bytes value) {
  const std::uint64_t bits = number_at(value, 0);
  return encode_held(held_key, bits) == value ? std::optional(bits) : std::nullopt;
}

}  // namespace weft
