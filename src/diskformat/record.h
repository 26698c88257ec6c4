// The envelope of all stored data except the bytes of packs (weft-store.5):
//   checksum u64 (XXH3-64 of the remaining bytes) · payload length u32 · kind u16 · format version u16 · payload
// Numbers are little-endian; the payload is a FlatBuffer. The checksum of a record in the index covers its table and
// key first, so that a value under a wrong key does not verify.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "diskformat/hash.h"
#include "weft/result.h"

namespace weft {

inline constexpr std::size_t kRecordHeader = 16;    // bytes
inline constexpr std::uint16_t kRecordVersion = 1;  // format version of a record; readers reject all others
inline constexpr std::uint32_t kStoreFormat = 21;   // format of the whole store, in STORE/weft-store

// Stored: never renumber, only append.
enum class RecordKind : std::uint16_t {
  identity = 1,     // STORE/weft-store
  toc = 2,          // packs/<id>.toc
  places = 3,       // ORIGIN/places/<manifest>
  origin = 4,       // ORIGIN/weft-origin, STORE/origin
  cluster = 5,      // STORE/cluster
  catalog_tag = 6,  // ORIGIN/journal/<time>-<hash>.tag
  catalog_removal = 7,
  packed_manifest = 8,  // a manifest, in a pack of manifests
  catalog_description = 9,
  catalog_undelete = 10,
  bundle = 11,  // BUNDLE/weft-bundle
  freed = 12,   // ORIGIN/freed/<sequence>
  catalog_renumber = 13,
  publish = 16,  // journal: 16 to 31
  tags = 17,
  removal = 18,
  repair = 19,
  adoption = 20,
  note = 21,
  description = 22,
  rename = 23,
  undelete = 24,
  renumber = 25,
  purge = 26,
  counters = 32,  // index
  model,
  model_name,
  name,
  number,
  version,
  tag,
  local,
  blob,
  view,
  inode,
  architecture,
  hint,
  manifest,
  former_name,
  tag_move,
  registry_meta = 96,  // values of etcd's keys
  registry_head,
  registry_version,
  registry_tombstone,
  registry_tag,
  registry_member,
  registry_moment,
  registry_mark,  // STORE/registry
  registry_claim,
  registry_node,
  registry_collection,
  registry_purge,
};

// Returns a whole record. `seed` is the hash of the table and key that the record is bound to; 0: it is not bound.
std::vector<std::byte> seal_record(RecordKind kind, std::span<const std::byte> payload, std::uint64_t seed = 0);

// Seals a record whose payload arrives in pieces, so that the whole payload need not be in memory.
class PiecewiseRecord {
 public:
  PiecewiseRecord(RecordKind kind, std::uint32_t payload_bytes);
  void add(std::span<const std::byte> piece) { hash_.add(piece); }
  // Returns the header of the record. Call after the last piece.
  std::array<std::byte, kRecordHeader> header() const;

 private:
  std::array<std::byte, kRecordHeader> header_{};
  Xxh3 hash_;
};

// Returns the payload, in memory that is aligned for FlatBuffers. Errc::corrupt: the bytes are not one whole record of
// this kind, or the checksum is wrong. Errc::unsupported: another format version.
Result<std::vector<std::byte>> open_record(RecordKind kind, std::span<const std::byte> record, std::string_view where,
                                           std::uint64_t seed = 0);

// For files of many records: returns the length, with header, of the record at the start of `bytes`. Nothing if the
// record is truncated or its checksum is wrong. Its kind and format version do not matter.
std::optional<std::size_t> record_length(std::span<const std::byte> bytes);
// True if `bytes` may begin with a record of the journal. A cheap filter before record_length(): it computes no hash.
bool looks_like_event(std::span<const std::byte> bytes);
RecordKind record_kind(std::span<const std::byte> record);  // call only if record_length() accepted the record

}  // namespace weft
