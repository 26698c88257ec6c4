// The index's rows and the FlatBuffers that hold them.
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

inline constexpr std::uint32_t kOriginFormat = 11;

struct Counters {
  std::uint64_t sequence = 0;
  VersionId next_version = 1;
  ModelId next_model = 1;
  Ino next_ino = kFirstStoredIno;
  std::uint64_t journal_end = 0;  // bytes of the journal that are applied to the index
  std::uint64_t lineage_clock = 0;
  std::uint64_t number_floor = 0;       // the journal may have lost models with version numbers up to this
  std::uint64_t registry_revision = 0;  // the store has all changes of the registry up to this revision
  std::uint64_t next_blob = 1;
  std::uint64_t last_rename = 0;  // tick of the lineage clock at the last rename; 0: none
};

// Identity of an origin, in the origin's directory and in a store that uses the origin.
struct OriginInfo {
  std::uint32_t format = kOriginFormat;
  std::string uuid;
  std::string cluster;  // id of the cluster that owns the origin
  std::uint64_t created_ns = 0;
};

// Value in `numbers` if the journal lost the version of this number.
inline constexpr VersionId kLostVersion = 0;

// A row of `names`: an entry in a listing of models/ or datasets/.
struct NameRow {
  bool is_model = false;  // a model or a data set, not only a prefix of names
  Ino ino = 0;
  std::uint64_t live = 0;      // models and data sets at or below this name that have a live version
  std::uint64_t datasets = 0;  // the data sets among `live`
};

// The present name of a model. Only this row and the model's own change when the model is renamed.
struct ModelNameRow {
  std::string name;
  std::uint64_t renamed = 0;  // tick of the lineage clock at the last rename; 0: none
  std::uint64_t renamed_ns = 0;
};

// A name that a model had. The name is free for another model, and no version number of it is used again.
struct FormerNameRow {
  ModelId model = 0;              // the last model that was renamed from it
  std::uint64_t next_number = 1;  // of the name
};

// One number: an inode, an id, a count.
struct NumberRow {
  std::uint64_t value = 0;
};

struct BlobRow {
  BlobPlace place;
  std::uint64_t number = 0;  // see index/blobs.h; 0: no version has held the blob yet
  bool absent() const { return place.pack == 0; }
};

// A manifest that versions need. It is stored in a pack of manifests or as a separate file.
struct ManifestRow {
  std::uint64_t versions = 0;  // count of versions that need the manifest
  BlobPlace place;             // pack 0: a separate file
  std::uint64_t length = 0;    // bytes in the pack, at most limits::kPackedManifestMax; unused for a file
  bool packed() const { return place.pack != 0; }
};

// The content that a hint points to (BlobIndex::hinted). The hint and the length are the key.
struct HintRow {
  Digest root;
};

// For each row type above, and for StoreInfo, ClusterIdentity, ModelRow, VersionRow, TagRow, TagMove, LocalRow and
// InodeRow.
template <class Row>
RecordKind record_kind_of();
template <class Row>
std::vector<std::byte> encode_row(const Row& row);
template <class Row>
Result<Row> decode_row(std::span<const std::byte> payload, std::string_view where);

}  // namespace weft
