// What a store is more in a cluster: a mirror of the registry, a cache of bytes that others own. Only the node's daemon
// writes to such a store, through this interface.
//
// Three things may be missing here. A version whose manifest nobody has looked at on this node is *bare*: names, times,
// sizes and inode numbers are there, content is not, until adopt(). A blob that versions need and no pack here has is
// *absent*: Snapshot::find_blob and Store::open_blob answer Errc::absent, holders and owned bytes are as ever. Bytes
// that were fetched lie in *cached packs*, which evict() may take at any time. Readers that have one open keep it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "weft/publish.h"
#include "weft/store.h"

namespace weft {

// Of a version that was removed before this store heard of it, `version.removed` is set.
struct MirroredVersion {
  VersionRow version;  // model_name and number name it; id, model, born, died, and parents' ids are not looked at
  std::uint64_t tree_nodes = 0;   // inode numbers to set aside
  std::vector<PackId> packs;      // that came with it, at its publisher
  std::vector<std::string> tags;  // set to it in the same change
  bool in_memory = false;         // for the registry; a mirror is told by MirroredMemory
};
// A version is in memory alone from now on, or not any more (VersionNote::in_memory).
struct MirroredMemory {
  std::string model;
  std::uint64_t number = 0;
  bool in_memory = false;
};
struct MirroredTag {
  std::string model;
  std::string name;
  std::uint64_t number = 0;    // 0: the tag goes
  std::uint64_t time_ns = 0;   // not looked at when it goes
  std::uint64_t revision = 0;  // of the registry, at which it was changed; 0: it does not tell
};
struct MirroredRemoval {
  std::string model;
  std::uint64_t number = 0;
  std::uint64_t time_ns = 0;
  std::string lost = {};  // as VersionRow::lost
};
using MirrorChange = std::variant<MirroredVersion, MirroredTag, MirroredRemoval, MirroredMemory>;

struct MirrorOutcome {
  std::uint64_t applied = 0;          // the others were so already, or are named here:
  std::vector<std::string> problems;  // one line each: a change that cannot be, as a second content of one number
};

// What was said of names, for who keeps it elsewhere. A version is as it was published, with this store's ids; a tag
// that went has the time of what it was before, and a nanosecond: the same on every node.
using Said = std::variant<VersionRow, MirroredTag, MirroredRemoval>;
struct SaidBatch {
  std::vector<Said> said;
  std::uint64_t end = 0;  // where the next begins
};

struct Adoption {
  std::string model;
  std::uint64_t number = 0;
  std::vector<std::byte> manifest;  // empty: the one that is here already (Errc::not_found when it is not)
};

// A blob whose bytes lie in a FetchPack, verified by the caller: all its chunks.
struct FetchedBlob {
  ContentId id;
  std::uint64_t offset = 0;
  std::vector<Digest> chunks;  // SHA-256 of each; they must give id.root
};

// A cached pack that is being filled. The file is sparse, of its final size, best laid out as a published file is: once
// every blob is in, it is what passthrough reads. Locked while this lives: neither gc nor evict() takes it. Any thread.
class FetchPack {
 public:
  virtual ~FetchPack() = default;  // what was added stays; with nothing added no pack is left
  virtual PackId id() const = 0;
  virtual int fd() const = 0;  // O_RDWR: the caller writes where blobs will be; before add() nobody else reads there
  virtual std::uint64_t size() const = 0;
  // Makes the bytes durable, lists the blobs, and fills in the rows of those that are absent, in one commit. Returns
  // how many these were: others are here from elsewhere, or no version needs them any more. Errc::invalid: digests that
  // do not agree, places that overlap or lie outside. Best many at a time: each call costs two syncs.
  virtual Result<std::size_t> add(std::span<const FetchedBlob> blobs) = 0;
};

struct CachedPack {
  PackId id = 0;
  std::uint64_t size = 0;        // of the file, holes included
  std::uint64_t disk_bytes = 0;  // blocks
  std::uint64_t used_ns = 0;     // when somebody last opened it; coarse
  bool pinned = false;           // a version that is pinned has blobs in it
};

enum class MemoryState : std::uint8_t {
  kept,   // all of it is on a disk
  waits,  // it needs versions of other nodes that are in memory themselves
  lost,   // some of it is nowhere
  gone,   // it was removed
};

struct EvictOptions {
  std::uint64_t disk_bytes_max = 0;  // least recently used first, until the cache has no more blocks than this
  std::optional<VersionId> version;  // only packs that have blobs of this version
  bool dry_run = false;
};
struct EvictReport {
  std::uint64_t packs = 0, disk_bytes = 0;  // evicted
  std::uint64_t kept_bytes = 0;             // blocks of the cache afterwards; of them
  std::uint64_t pinned_bytes = 0;
  std::uint64_t busy_bytes = 0;  // of packs that are being filled
};

class ClusterStore : public Store {
 public:
  // Opens for writing as the one daemon of this store: holds STORE/daemon.lock exclusively. Waits for libraries that
  // write, as options.patience says; `options.write` is implied. Other errors as Store::open.
  static Result<std::unique_ptr<ClusterStore>> open(const std::string& path, const OpenOptions& options);

  // Makes the store one of a cluster, for good, in STORE/cluster; fine when it is one of this already. From then on
  // names change by mirror() alone. Errc::unsupported: a store with versions of its own.
  // Errc::exists: it belongs to another cluster, or is another node's.
  virtual Status join(const ClusterIdentity& identity) = 0;

  // Takes over changes of the registry, in its order, in one commit. What is so already is left as it is: changes may
  // come again. `revision` is that of the registry up to which this store then knows everything; it may go back, when
  // the registry is another. A list that takes several calls keeps the revision of before until its last call, and
  // brings what is gone in that one. Tags and removals of what is not here mean nothing.
  // A version whose manifest is here is taken whole; `packs` of it that are here bring their blobs.
  // Snapshots see the changes a moment before they are durable, which they are when this returns: a machine that stops
  // in between comes up with an earlier revision.
  virtual Result<MirrorOutcome> mirror(std::span<const MirrorChange> changes, std::uint64_t revision) = 0;

  // Gives bare versions their content, in one commit; those that have it are left alone. Errc::corrupt: a manifest that
  // is not the version's, or not what its record says. Errc::not_found: no such live version.
  virtual Status adopt(std::span<const Adoption> versions) = 0;

  // A new cached pack for `size` bytes. Errc::no_space.
  virtual Result<std::unique_ptr<FetchPack>> fetch_pack(std::uint64_t size) = 0;
  // Goes on filling one that is not complete. Errc::not_found; Errc::busy: another FetchPack fills it. Errc::invalid:
  // it is no cached pack, or one that has lost blobs: begin a new one.
  virtual Result<std::unique_ptr<FetchPack>> resume_fetch(PackId pack) = 0;
  virtual Result<std::vector<CachedPack>> cached_packs() = 0;  // least recently used first
  virtual Result<EvictReport> evict(const EvictOptions& options) = 0;

  // The SHA-256 of its chunks, as the .toc of its pack has them. Errors as Store::open_blob.
  virtual Result<std::vector<Digest>> chunks(const ContentId& id) = 0;

  // This pack is cache from now on: the caller knows that what versions need of it can be had elsewhere for good.
  // False: it stays, because a publish of this process relies on it, or did a moment ago, or because it holds
  // manifests.
  virtual Result<bool> make_evictable(PackId pack) = 0;

  // If the stored bytes of a blob that versions need are damaged or missing, the blob is absent from now on, so that it
  // is fetched again. Returns the place that it had, and whether its pack was cache. Nothing: its bytes are whole, or
  // no live version needs it.
  struct ForgottenPlace {
    BlobPlace place;
    bool cached = false;
  };
  virtual Result<std::optional<ForgottenPlace>> forget_damaged(const ContentId& id) = 0;
  // Undoes it, where the blob could not be fetched: part of the damaged bytes may be of use.
  virtual Status put_back(const ContentId& id, const BlobPlace& place) = 0;

  // Versions that were published into memory (Snapshot::in_memory()), by this node. Waits until all that this one needs
  // of this node is on the disk, with `pace` between pieces of some MiB. After the machine has stopped, it looks at
  // what there still is. The answer is for the registry: keep_version(), or remove_version() with a reason.
  virtual Result<MemoryState> settle_version(VersionId version, const FlushPace& pace) = 0;
  // Bytes of its packs that may not be on the disk.
  virtual Result<std::uint64_t> unsynced_bytes(VersionId version) = 0;
  // Of a node alone: it is not in memory any more; it is removed, as its bytes were lost.
  virtual Status keep_version(std::string_view model, std::uint64_t number) = 0;
  virtual Status lose_version(std::string_view model, std::uint64_t number, std::string_view why) = 0;

  // These versions are at the origin: Snapshot::unsaved() forgets them.
  virtual Status saved(std::span<const VersionId> versions) = 0;

  // The id of the origin that has what is saved(); "": of none yet.
  virtual Result<std::string> origin() = 0;
  // This is the origin from now on: all live versions that this node published are unsaved() again.
  virtual Status set_origin(const std::string& uuid) = 0;

  // What this store has heard behind `from`, 0 or the end of an earlier batch, in order; a part where it is much. With
  // nothing more to come `end` is Snapshot::journal_end(). What its journal has lost is left out.
  virtual Result<SaidBatch> said(std::uint64_t from) = 0;
  // Up to where the origin of this id has it all, as set_told() said last; 0 for others, and for an index made anew.
  virtual Result<std::uint64_t> told(std::string_view origin) = 0;
  virtual Status set_told(std::string_view origin, std::uint64_t end) = 0;
};

// Takes all versions in memory to the disk, oldest first. The store is alone, and this process stands in for its weftd.
// One that has lost bytes is removed, and its record says why.
Status settle_memory(ClusterStore& store);

}  // namespace weft
