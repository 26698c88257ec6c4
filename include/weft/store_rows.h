// Rows of a store's index, as its users see them (header only).
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weft/content.h"
#include "weft/dtype.h"
#include "weft/names.h"
#include "weft/uuid.h"

namespace weft {

using ModelId = std::uint64_t;
using VersionId = std::uint64_t;  // one counter over all models: a larger one was published later
using PackId = std::uint64_t;
using Ino = std::uint64_t;

// Inode numbers below this are fixed; the store's counter starts here. The index has rows of two fixed ones, which
// record the time of their last change.
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

// The cluster that a store belongs to, and its node in that cluster. From STORE/cluster.
struct ClusterIdentity {
  std::string cluster;  // id in the registry
  std::string node;     // uuid
  bool operator==(const ClusterIdentity&) const = default;
};

// The place of a change in the registry's history. A reconciliation begins a new generation, whose number is larger,
// and in one generation revisions grow.
struct RegistryStamp {
  std::uint64_t generation = 0;  // 0: unknown, or no registry
  std::uint64_t revision = 0;
  auto operator<=>(const RegistryStamp&) const = default;
};

// The place of a tag's setting among all settings of the tag: the largest one counts. Time and identity decide between
// two histories of one generation, in which two settings may have one stamp.
struct TagOrder {
  RegistryStamp stamp;
  std::uint64_t time_ns = 0;
  Uuid uid;  // of the version
  auto operator<=>(const TagOrder&) const = default;
};

// The author of a change, as texts for people.
struct Author {
  std::string user = {};  // user name, or the uid if the user has no name; "": unknown, or a weftd
  std::string node = {};  // name of the node (Member::name); "" without a cluster
  bool bound = false;     // protected tags of other users refuse this author; recorded nowhere
  bool operator==(const Author&) const = default;
};

// Where the files of a version came from, as texts of the publisher: no store can verify them.
struct Provenance {
  std::string endpoint = {};           // URL of the model hub
  std::string repository = {};         // "hf:org/bert" or "hf:datasets/org/c4"
  std::string revision = {};           // as the publisher named it: a branch, a tag or a commit
  std::string commit = {};             // the hub's commit of the imported files (is_commit_hash); "": none is known
  std::string access = {};             // "private" or "gated"; "": the hub lets everybody read them, or none is known
  std::uint64_t listed_ns = 0;         // time of the listing of the files; 0: unknown
  std::vector<std::string> urls = {};  // of the files, without queries, which may hold signatures
  // With `urls`: the number of URLs that the list lacks. With a commit: the number of its files that the version lacks,
  // because a pull selected others: then the version is a part of the commit.
  std::uint64_t left_out = 0;
  bool operator==(const Provenance&) const = default;
  bool empty() const { return *this == Provenance{}; }
  bool is_part() const { return !commit.empty() && left_out > 0; }
};

struct ModelRow {
  ModelId id = 0;
  std::string name;
  std::uint64_t next_number = 1;
  std::uint64_t first_number = 1;  // above 1 if another model had the name and used the smaller numbers
  std::uint64_t latest = 0;        // largest live number; 0 if all are removed
  Ino ino = 0;                     // models/<name>
  Ino latest_ino = 0;              // models/<name>/latest
  std::uint64_t created_ns = 0;
  std::uint64_t changed_ns = 0;  // time of the last publish, tag, note, removal or undelete in it, or of a rename
  std::uint64_t live = 0;        // number of live versions
  std::uint64_t tags = 0;
  VersionKind kind = VersionKind::model;  // of all its live versions
};

// An edge from a version to a parent. The parent was published earlier, so there are no cycles.
struct ParentRef {
  std::string model;
  std::uint64_t number = 0;
  // True if the parent was declared (--parent, a model card, an adapter's configuration), false if it was found by
  // shared bytes.
  bool declared = true;
  // Tensors of the child that the parent has too: with equal content, element type and shape, under any name.
  std::uint64_t same_tensors = 0;
  std::uint64_t same_bytes = 0;
  VersionId id = 0;  // 0 before a store has the version, or if its journal lost the parent

  bool verified() const { return same_tensors > 0; }
};

using Metrics = std::vector<std::pair<std::string, std::string>>;  // names and values

// A change of the message and the metrics of a version.
struct DescriptionChange {
  std::optional<std::string> message;  // replaces the message
  Metrics metrics;                     // set these; the others stay
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
  Metrics metrics;
  std::vector<ParentRef> parents;
  bool removed = false;  // a tombstone: name, time, parents stay; gc frees the content
  std::uint64_t removed_ns = 0;
  std::uint64_t tensors = 0;
  std::uint64_t tensor_bytes = 0;
  std::vector<std::string> elsewhere;  // names of declared parents that this store did not have
  // Ticks of the store's lineage clock, which counts publishes, removals, undeletes, renames and changes of a message
  // or metrics: of the publish, and of the removal (0: live).
  std::uint64_t born = 0;
  std::uint64_t died = 0;
  std::string publisher;  // uuid of the publishing node, from the registry; "" if published in this store alone
  std::string lost;       // why it was removed, if its bytes were lost; "": removed by a user, or live
  VersionKind kind = VersionKind::model;
  // Time of the last change of message and metrics, the same on all nodes; 0: they are as they were published. Of two
  // states of one version the one with the larger time is the later.
  std::uint64_t described_ns = 0;
  std::uint64_t described = 0;  // tick of the lineage clock at that change
  Provenance source = {};       // empty: none is known
  // Tick and time of the last rename of its model; 0: none. Not stored with the version.
  std::uint64_t renamed = 0;
  std::uint64_t renamed_ns = 0;
  // Time of the last undelete, the same on all nodes; 0: none. The times of removals and undeletes of a version grow,
  // so the state with the largest time is true.
  std::uint64_t undeleted_ns = 0;
  std::uint64_t undeleted = 0;                 // tick of the lineage clock at that undelete
  std::vector<std::string> removed_tags = {};  // of a removed version: its tags at the removal
  Author by = {};                              // the publishing user, alike on all nodes
  // The identity of the version: random, made once by its publish, the same on all nodes and at the origin. Model and
  // number are its name, which a registry that lost history may give to another version.
  Uuid uid = {};
};
inline std::string spec_of(const VersionRow& version) {
  return spec_of(version.model_name, version.number);
}

// Returns the commit that a version is for clients of a model hub: the first kCommitDigits of its manifest's digest.
inline std::string commit_of(const VersionRow& version) {
  return to_hex(version.manifest).substr(0, kCommitDigits);
}

// A tag, and the version that it leads to.
struct TagTarget {
  std::string name;
  std::uint64_t number = 0;
};

// A removed version that is live again.
struct UndeletedVersion {
  std::string model;
  std::uint64_t number = 0;
  std::vector<std::string> tags;  // names of its tags at the removal, which lead to it again
  std::vector<TagTarget> moved;   // tags that led to it, and lead to another version by now
};

// Facts about a version that only this node has.
struct LocalRow {
  Ino ino_base = 0;
  std::uint64_t ino_count = 0;
  std::vector<Ino> view_inos;  // by tensor ordinal
  std::vector<Range> blobs;    // numbers of its blobs (index/blobs.h), in the order of their first use in its files
  Digest outline;              // manifest.h; zeros while the manifest is not local
};

struct TagRow {
  std::string name;
  std::uint64_t number = 0;
  Ino ino = 0;
  std::uint64_t time_ns = 0;
  RegistryStamp stamp = {};  // of the setting
  std::string owner = {};    // the user who has protected it; "": it is not protected
};

// A change of a tag.
struct TagMove {
  std::string name;
  std::uint64_t before = 0;  // number of its version before the change; 0: it was not set
  std::uint64_t number = 0;  // number of its version since then; 0: it was deleted
  std::uint64_t time_ns = 0;
  Author by;
  RegistryStamp stamp = {};
};

struct BlobPlace {
  PackId pack = 0;  // 0: the blob is known and not local
  std::uint64_t offset = 0;
  bool operator==(const BlobPlace&) const = default;
};

// The identity of a tensor view: equal keys share one inode.
struct ViewKey {
  ContentId content;  // a blob, or a scattered tensor's bytes (manifest.h), which are no blob; length 0: neither
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
  std::uint64_t view_links = 0;     // number of its names in all live versions
  std::uint64_t view_versions = 0;  // versions that have it: live, or removed and not reaped yet
  std::uint64_t view_time_ns = 0;   // publish time of the first version that had it
  VersionId view_first = 0;         // that version, which may be removed
  std::uint64_t changed_ns = 0;     // namespace_dir: when an entry last appeared or disappeared; 0: never
};

// An entry of a directory below models/ or datasets/ that is not a version's: the next component of names.
struct NamespaceEntry {
  std::string component;
  bool is_model = false;  // a model or a data set
  Ino ino = 0;
  std::uint64_t models = 0, datasets = 0;  // visible ones: itself, or those below it
};

struct StoreCounts {
  std::uint64_t models = 0, versions = 0, tags = 0, blobs = 0, views = 0, packs = 0;
  std::uint64_t blob_bytes = 0;    // unique bytes that versions need
  std::uint64_t absent_blobs = 0;  // of these, blobs that are not local
  std::uint64_t absent_bytes = 0;
  std::uint64_t open_removed = 0;  // removed versions that are still whole: a reader has them open, or weftd holds them
  std::uint64_t lost = 0;          // removed versions whose bytes were lost (VersionRow::lost)
  VersionRow newest_lost;          // the last one that was removed
  std::uint64_t dead_bytes = 0;    // indexed bytes that no version needs; gc frees them
  std::uint64_t pack_disk_bytes = 0;  // blocks of the pack files
};

}  // namespace weft
