// The index's rows and the FlatBuffers that hold them. Each row type has one specialisation of encode_row and
// decode_row; what decode_row returns is within the bounds of base/limits.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "diskformat/record.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

inline constexpr std::uint32_t kOriginFormat = 3;

struct Counters {
  std::uint64_t sequence = 0;
  VersionId next_version = 1;
  ModelId next_model = 1;
  Ino next_ino = kFirstStoredIno;
  std::uint64_t journal_end = 0;  // bytes of the journal that the index has seen
  std::uint64_t lineage_clock = 0;
  std::uint64_t number_floor = 0;       // numbers up to here may have been given to models that the journal lost
  std::uint64_t registry_revision = 0;  // up to which all of the registry is known
  std::uint64_t next_blob = 1;
};

// Which origin a directory is, or a store knows.
struct OriginInfo {
  std::uint32_t format = kOriginFormat;
  std::string uuid;
  std::string cluster;  // whose it is
  std::uint64_t created_ns = 0;
};

// In `numbers`: the journal lost what this number was.
inline constexpr VersionId kLostVersion = 0;

// A row of `names`: what a listing of models/ shows.
struct NameRow {
  bool is_model = false;
  Ino ino = 0;
  std::uint64_t live = 0;  // models at or below this name that have a live version
};

struct ModelNameRow {
  std::string name;
};

// One number: an inode, an id, a count.
struct NumberRow {
  std::uint64_t value = 0;
};

struct BlobRow {
  BlobPlace place;
  std::uint64_t number = 0;  // index/blobs.h; 0: no version has held it yet
  bool absent() const { return place.pack == 0; }
};

// A manifest that versions need. It lies at a place in a pack, or it is a file of its own.
struct ManifestRow {
  std::uint64_t versions = 0;  // that need it
  BlobPlace place;             // pack 0: a file
  std::uint64_t length = 0;    // where it is in a pack: bytes, at most limits::kPackedManifestMax
  bool packed() const { return place.pack != 0; }
};

// The content that a hint leads to (BlobIndex::hinted).
struct HintRow {
  Digest root;
};

template <class Row>
RecordKind record_kind_of();
template <class Row>
std::vector<std::byte> encode_row(const Row& row);
template <class Row>
Result<Row> decode_row(std::span<const std::byte> payload, std::string_view where);

#define WEFT_ROW(Row)                            \
  template <>                                    \
  RecordKind record_kind_of<Row>();              \
  template <>                                    \
  std::vector<std::byte> encode_row(const Row&); \
  template <>                                    \
  Result<Row> decode_row(std::span<const std::byte>, std::string_view);
WEFT_ROW(StoreInfo)
WEFT_ROW(OriginInfo)
WEFT_ROW(ClusterIdentity)
WEFT_ROW(Counters)
WEFT_ROW(ModelRow)
WEFT_ROW(ModelNameRow)
WEFT_ROW(NameRow)
WEFT_ROW(NumberRow)
WEFT_ROW(VersionRow)
WEFT_ROW(TagRow)
WEFT_ROW(LocalRow)
WEFT_ROW(BlobRow)
WEFT_ROW(HintRow)
WEFT_ROW(ManifestRow)
WEFT_ROW(InodeRow)
#undef WEFT_ROW

}  // namespace weft
