// The envelope of everything that the store keeps besides the bytes of packs (weft-store.5):
//   checksum u64 (XXH3-64 of all that follows) · payload length u32 · kind u16 · format version u16 · payload
// little-endian, the payload a FlatBuffer. A record inside the index is bound to its table and key, which are hashed
// first: a value that lies under a wrong key does not verify.
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
inline constexpr std::uint16_t kRecordVersion = 1;  // of records that we write; others are refused
inline constexpr std::uint32_t kStoreFormat = 11;   // of the store as a whole, in STORE/weft-store

// Stored: never renumber, only append.
enum class RecordKind : std::uint16_t {
  identity = 1,  // STORE/weft-store
  toc = 2,       // packs/<id>.toc
  places = 3,    // of an origin: places/<manifest>
  origin = 4,    // of an origin: weft-origin
  cluster = 5,   // STORE/cluster
  said_tag = 6,  // of an origin: journal/<time>-<hash>.tag
  said_removal = 7,
  packed_manifest = 8,  // in a pack of manifests: the payload is a manifest
  publish = 16,         // journal: 16 to 31
  tags = 17,
  removal = 18,
  repair = 19,
  adoption = 20,
  note = 21,
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
  registry_meta = 96,  // values of etcd's keys
  registry_head,
  registry_version,
  registry_tombstone,
  registry_tag,
  registry_member,
  registry_moment,
  registry_mark,  // STORE/registry
};

// `seed` is 0, or the hash of what the record is bound to.
std::vector<std::byte> seal_record(RecordKind kind, std::span<const std::byte> payload, std::uint64_t seed = 0);

// Seals a record whose payload comes in pieces, so that it need not be in memory as a whole.
class PiecewiseRecord {
 public:
  PiecewiseRecord(RecordKind kind, std::uint32_t payload_bytes);
  void add(std::span<const std::byte> piece) { hash_.add(piece); }
  // What stands before the payload; after the last piece.
  std::array<std::byte, kRecordHeader> header() const;

 private:
  std::array<std::byte, kRecordHeader> header_{};
  Xxh3 hash_;
};

// The payload, in memory that is aligned for FlatBuffers. Errc::corrupt: not one whole record of this kind, or its
// checksum is wrong. Errc::unsupported: another version.
Result<std::vector<std::byte>> open_record(RecordKind kind, std::span<const std::byte> record, std::string_view where,
                                           std::uint64_t seed = 0);

// For files of many records: the whole length of the record that `bytes` begins with, if it is all there and verifies
// (of whatever kind and version).
std::optional<std::size_t> record_length(std::span<const std::byte> bytes);
// Whether the header of a journal's record may stand here: few places look so, and it costs no hash to tell.
bool looks_like_event(std::span<const std::byte> bytes);
RecordKind record_kind(std::span<const std::byte> record);  // of a record that record_length() accepted

}  // namespace weft
