// The rows of a store's index, as its users see them.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "weft/content.h"
#include "weft/dtype.h"
#include "weft/lineage.h"
#include "weft/names.h"

namespace weft {

using ModelId = std::uint64_t;
using VersionId = std::uint64_t;  // one counter over all models: a larger one was published later
using PackId = std::uint64_t;
using Ino = std::uint64_t;

// Inode numbers below are fixed; the store's counter starts here. The index has rows of two of them, to keep when they
// last changed.
inline constexpr Ino kFirstStoredIno = 1024;
inline constexpr Ino kModelsIno = 3;
inline constexpr Ino kHubIno = 8;

// A version by its name.
struct VersionName {
  std::string model;
  std::uint64_t number = 0;
  auto operator<=>(const VersionName&) const = default;
};

struct StoreInfo {
  std::uint32_t format = 0;
  std::string uuid;
  std::uint64_t created_ns = 0;  // times are nanoseconds since 1970, UTC
};

// Which cluster a store belongs to, and as which node. Of STORE/cluster.
struct ClusterIdentity {
  std::string cluster;  // id, as the registry has it
  std::string node;     // uuid
  bool operator==(const ClusterIdentity&) const = default;
};

struct ModelRow {
  ModelId id = 0;
  std::string name;
  std::uint64_t next_number = 1;
  std::uint64_t latest = 0;  // the largest live number; 0 when all are removed
  Ino ino = 0;               // models/<name>
  Ino latest_ino = 0;        // models/<name>/latest
  std::uint64_t created_ns = 0;
  std::uint64_t changed_ns = 0;  // of the last publish, tag or removal in it
  std::uint64_t live = 0;        // versions that are not removed
  std::uint64_t tags = 0;
  VersionKind kind = VersionKind::model;  // of all its versions
};

struct VersionRow {
  VersionId id = 0;
  ModelId model = 0;
  std::string model_name;
  std::uint64_t number = 0;
  Digest manifest;
  std::uint64_t time_ns = 0;
  std::uint64_t logical_bytes = 0;
  std::string message;
  std::vector<std::pair<std::string, std::string>> metrics;
  std::vector<ParentRef> parents;
  bool removed = false;  // a tombstone: name, time, parents stay; content is given back by gc
  std::uint64_t removed_ns = 0;
  std::uint64_t tensors = 0;
  std::uint64_t tensor_bytes = 0;
  std::vector<std::string> elsewhere;  // parents by name that its files declare and this store did not have
  // Ticks of the store's lineage clock, which counts publishes and removals: when it came, and went (0: it did not).
  std::uint64_t born = 0;
  std::uint64_t died = 0;
  std::string publisher;  // uuid of the node that brought it, by the registry; "" for a publish of this store alone
  std::string lost;       // why it was removed, if its bytes were lost; "": somebody removed it, or it is live
  VersionKind kind = VersionKind::model;
};

// What only this node knows of a version.
struct LocalRow {
  Ino ino_base = 0;
  std::uint64_t ino_count = 0;
  std::vector<Ino> view_inos;  // by tensor ordinal
  std::vector<Range> blobs;    // their numbers (index/blobs.h), in the order in which its files first name them
  Digest outline;              // manifest.h; zeros while the manifest is not here
};

struct TagRow {
  std::string name;
  std::uint64_t number = 0;
  Ino ino = 0;
  std::uint64_t time_ns = 0;
};

struct BlobPlace {
  PackId pack = 0;  // 0, of no pack: the blob is known and not here
  std::uint64_t offset = 0;
  bool operator==(const BlobPlace&) const = default;
};

// The identity of a tensor view: equal keys share one inode.
struct ViewKey {
  ContentId content;  // a blob, or a scattered tensor's bytes (manifest.h), which no blob is; length 0: neither
  DType dtype = DType::u8;
  Shape shape;
  std::string descr;
};

enum class InodeKind : std::uint8_t { namespace_dir = 1, model_dir, latest_link, tag_link, version, view };

struct InodeRow {
  InodeKind kind = InodeKind::version;
  Ino base = 0;  // the first number of the range; a version's node index is ino - base
  std::uint64_t count = 1;
  ModelId model = 0;                // model_dir, latest_link, tag_link
  VersionId version = 0;            // version
  std::string name;                 // tag_link: the tag. namespace_dir, model_dir: the path below models/
  ViewKey view;                     // view
  std::uint64_t view_links = 0;     // its names in all live versions
  std::uint64_t view_versions = 0;  // that have it: live ones, and removed ones that are not reaped yet
  std::uint64_t view_time_ns = 0;   // publish time of the first version that had it
  VersionId view_first = 0;         // that version; it may be removed by now
  std::uint64_t changed_ns = 0;     // namespace_dir: when a name last appeared or went; 0: never
};

// An entry of a directory below models/ or datasets/ that is not a version's: a next component of names.
struct NamespaceEntry {
  std::string component;
  bool is_model = false;  // or a data set
  Ino ino = 0;
  std::uint64_t models = 0, datasets = 0;  // it is, or has below it, so many that show
};

struct StoreCounts {
  std::uint64_t models = 0, versions = 0, tags = 0, blobs = 0, views = 0, packs = 0;
  std::uint64_t blob_bytes = 0;    // unique bytes that versions need
  std::uint64_t absent_blobs = 0;  // of the blobs, those that are not here
  std::uint64_t absent_bytes = 0;
  std::uint64_t open_removed = 0;     // removed versions that are whole: somebody has them open, or weftd holds them
  std::uint64_t lost = 0;             // removed versions whose bytes were lost (VersionRow::lost)
  VersionRow newest_lost;             // the one that was removed last
  std::uint64_t dead_bytes = 0;       // indexed bytes that no version needs; gc gives them back
  std::uint64_t pack_disk_bytes = 0;  // blocks of the pack files
};

}  // namespace weft
