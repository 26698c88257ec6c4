// The envelope of everything that the store keeps besides the bytes of packs (weft-store.5):
//   checksum u64 (XXH3-64 of all that follows) · payload length u32 · kind u16 · format version u16 · payload
// little-endian, the payload a FlatBuffer. A record inside the index is bound to its table and key, which are hashed
// first: a value that lies under a wrong key does not verify.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "weft/result.h"

namespace weft {

inline constexpr std::size_t kRecordHeader = 16;    // bytes
inline constexpr std::uint16_t kRecordVersion = 1;  // of records that we write; larger ones are refused
inline constexpr std::uint32_t kStoreFormat = 1;    // of the store as a whole, in STORE/weft-store

// Stored: never renumber, only append.
enum class RecordKind : std::uint16_t {
  identity = 1,  // STORE/weft-store
  toc = 2,       // packs/<id>.toc
  publish = 16,  // journal
  tags = 17,
  removal = 18,
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
};

// A payload in memory that is aligned for any FlatBuffer.
class Payload {
 public:
  Payload() = default;
  explicit Payload(std::span<const std::byte> bytes);
  const std::uint8_t* data() const { return reinterpret_cast<const std::uint8_t*>(words_.data()); }
  std::size_t size() const { return size_; }

 private:
  std::vector<std::uint64_t> words_;
  std::size_t size_ = 0;
};

struct Record {
  RecordKind kind = RecordKind::identity;
  Payload payload;
};

// `seed` is 0, or the hash of what the record is bound to.
std::vector<std::byte> encode_record(RecordKind kind, std::span<const std::byte> payload, std::uint64_t seed = 0);

// Errc::corrupt: not one whole record of this kind, or its checksum is wrong. Errc::unsupported: a newer version.
Result<Payload> decode_record(std::span<const std::byte> bytes, RecordKind kind, std::string_view where,
                              std::uint64_t seed = 0);

// The whole length of the record that `bytes` begins with, if it is all there and verifies (of whatever kind and
// version). For files of many records.
std::optional<std::size_t> record_length(std::span<const std::byte> bytes);

// The kind of a record that record_length() accepted. Errc::unsupported: a newer version.
Result<Record> open_record(std::span<const std::byte> bytes, std::string_view where);

}  // namespace weft
