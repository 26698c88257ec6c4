// Keys of the index. Numbers are big-endian, so that LMDB's bytewise order is the numeric order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "weft/content.h"
#include "weft/store_rows.h"

namespace weft {

enum class Table : std::uint8_t {
  meta,
  models,
  model_ids,
  names,
  dirs,
  versions,
  numbers,
  tags,
  version_tags,
  locals,
  owned,
  blobs,
  holders,
  dead,
  views,
  inodes,
  children,
  manifests,
  architectures,
  arch_of,
  arch_versions,
  arch_items,
  hints,
  revisions,
  commits,
  packs,
  former_names,
  tag_moves,
};
inline constexpr std::size_t kTableCount = 28;
bool keeps_sets(Table table);  // true if each key has a sorted set of values of equal size
std::string_view table_name(Table table);

using Bytes = std::string_view;

std::string key_of(std::uint64_t number);
std::string key_of(std::uint64_t first, std::uint64_t second);
std::string file_key(VersionId version, std::uint32_t file);
std::string tag_key(ModelId model, std::string_view tag);
std::string version_tag_key(ModelId model, std::uint64_t number, std::string_view tag);
// Key of `tag_moves`, by the sequence number of the change's event. The changes of a model lie newest first.
std::string tag_move_key(ModelId model, std::uint64_t sequence, std::string_view tag);
std::string name_key(std::string_view prefix, std::string_view component);
std::string blob_key(const ContentId& id);  // length, root
std::string hint_key(std::uint64_t length, std::uint64_t hint);
std::string digest_key(const Digest& digest);
Digest digest_of(Bytes digest_key);
// Key of `revisions`: model, the first kRevisionBytes of the manifest's digest, version. The table has a row for each
// live version, so that versions of a model with equal content are adjacent, the oldest first.
inline constexpr std::size_t kRevisionBytes = 20;
std::string revision_key(ModelId model, const Digest& manifest, VersionId version);
// Key of `commits`: model, the digits of the source commit, version. The table has a row for each live version that has
// such a commit.
std::string commit_key(ModelId model, std::string_view commit, VersionId version);
std::string view_key(const ViewKey& view);  // SHA-256 of all fields: two views never share a key

std::uint64_t number_at(Bytes key, std::size_t offset);  // 0 past the end
std::uint32_t file_at(Bytes key, std::size_t offset);
std::uint64_t blob_length(Bytes blob_key);
ContentId blob_id(Bytes blob_key);

// A row of `holders`. Key: group of blobs, version, file. Value: one bit for each blob of the group that the file
// holds, and a checksum that is bound to the key.
using Holder = std::pair<VersionId, std::uint32_t>;  // version, file
inline constexpr std::uint64_t kBlobsPerGroup = 64;  // group = blob number / 64
std::string held_key(std::uint64_t group, const Holder& holder);
Holder holder_at(Bytes held_key);
std::string encode_held(Bytes held_key, std::uint64_t bits);
std::optional<std::uint64_t> decode_held(Bytes held_key, Bytes value);

}  // namespace weft
