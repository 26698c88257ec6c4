// The part of a store that only a cluster uses (store/cluster/store_mirror.cc): the mirror of the registry, the cache
// of bytes that other nodes own, and what the origin has. Only the node's daemon writes to such a store.
//
// Three things can be missing in it. A version is *bare* if this node has not fetched its manifest: it has names,
// times, sizes and inode numbers, and gets its content from FetchedCache::adopt(). A blob is *absent* if versions need
// it and no local pack has it: Snapshot::find_blob and Store::open_blob return Errc::absent, but its holders and owned
// bytes are known. Fetched bytes lie in *cached packs*, which evict() may delete at any time. Readers that have one
// open keep it.
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

#include "weft/store/publish.h"
#include "weft/store/store.h"

namespace weft {

class SafePath;  // os/safe_path.h

// The present state of a version. If it was removed, `version.removed` is set, also for a version that this store has
// not. If this store has a live version as removed, and `version.undeleted_ns` is later than that removal, the version
// is live again. If the states are equal, the later time counts.
struct MirroredVersion {
  VersionRow version;             // named by model_name and number; id, model, born, died, and parents' ids are ignored
  std::uint64_t tree_nodes = 0;   // inode numbers to reserve
  std::vector<PackId> packs;      // packs that came with it, on its publisher
  std::vector<std::string> tags;  // tags set in the same change, or of a removed version its tags at the removal
  bool in_memory = false;         // for the registry; mirrors receive MirroredMemory instead
  Author removed_by = {};         // if the version was removed
  // For the registry, of a version that was undeleted: the revision of its publish.
  std::uint64_t published_at = 0;
  std::vector<std::uint64_t> former = {};  // numbers that it had before, oldest first
  std::uint64_t returned = 0;  // for the registry: generation of the reconciliation that brought it back; 0: none
  RegistryStamp at = {};       // of the removal, if it was removed
};
// From this change on, the bytes of a version are in memory alone, or are on a disk (VersionNote::in_memory).
struct MirroredMemory {
  std::string model;
  std::uint64_t number = 0;
  bool in_memory = false;
  Uuid uid = {};  // of the version; zeros: not known
};
struct MirroredTag {
  std::string model;
  std::string name;
  std::uint64_t number = 0;    // 0: the tag is deleted
  std::uint64_t time_ns = 0;   // 0: unknown time of a deletion
  std::uint64_t revision = 0;  // revision of the registry at the change; 0: not known
  Author by = {};
  Uuid uid = {};                 // of the version; zeros: not known, or the tag is deleted
  std::uint64_t generation = 0;  // of the registry at the change; 0: not known
  std::string owner = {};        // as TagRow::owner
  RegistryStamp stamp() const { return {generation, revision}; }
  TagOrder order() const { return {stamp(), time_ns, uid}; }
};
// A version was removed. For the origin.
struct MirroredRemoval {
  std::string model;
  std::uint64_t number = 0;
  std::uint64_t time_ns = 0;
  std::string lost = {};  // as VersionRow::lost
  Uuid uid = {};          // of the version, as in the next two
};
// A removed version is live again. For the origin.
struct MirroredUndelete {
  std::string model;
  std::uint64_t number = 0;
  std::uint64_t time_ns = 0;  // as VersionRow::undeleted_ns
  Uuid uid = {};
};
// A version has another number: the registry had given the former one to another version too. For the origin.
struct MirroredRenumber {
  std::string model;
  std::uint64_t number = 0;  // the former one
  std::uint64_t to = 0;
  std::uint64_t time_ns = 0;
  Uuid uid = {};
};
// New message and metrics of a version. For the origin.
struct MirroredDescription {
  std::string model;
  std::uint64_t number = 0;
  std::string message;
  Metrics metrics;
  std::uint64_t time_ns = 0;  // as VersionRow::described_ns
  Uuid uid = {};
};
// A removed version was purged: it is never undeleted, and each node frees its content. No effect on a live version.
struct MirroredPurge {
  std::string model;
  std::uint64_t number = 0;
  std::uint64_t time_ns = 0;
  Author by = {};
  Uuid uid = {};  // of the version
};
using MirrorChange = std::variant<MirroredVersion, MirroredTag, MirroredMemory, MirroredPurge>;

struct MirrorOutcome {
  std::uint64_t applied = 0;          // changes that took effect; all others were known already or are problems
  std::vector<std::string> problems;  // one line for each impossible change, such as a second content of one number
};

// Catalog events for the origin. A version is as this store received it first, with this store's ids. If it had been
// described or undeleted before, its description and its undelete are further events.
using CatalogEvent =
    std::variant<VersionRow, MirroredTag, MirroredRemoval, MirroredDescription, MirroredUndelete, MirroredRenumber>;
struct CatalogEvents {
  std::vector<CatalogEvent> events;
  std::uint64_t end = 0;  // where the next batch begins
};

struct Adoption {
  std::string model;
  std::uint64_t number = 0;
  std::vector<std::byte> manifest;  // empty: the local one (Errc::not_found if there is none)
};

// A blob whose bytes lie in a FetchPack. The caller has verified all its chunks.
struct FetchedBlob {
  ContentId id;
  std::uint64_t offset = 0;
  std::vector<Digest> chunks;  // SHA-256 of each; they must give id.root
};

// A cached pack that is being filled. The file is sparse and has its final size. It should have the layout of a
// published file: once every blob is in, passthrough reads it. Locked against gc and evict() while this lives. Any
// thread.
class FetchPack {
 public:
  virtual ~FetchPack() = default;  // added blobs stay; a pack without blobs is deleted
  virtual PackId id() const = 0;
  virtual int fd() const = 0;  // O_RDWR: the caller writes at places of blobs; nobody else reads them before add()
  virtual std::uint64_t size() const = 0;
  // Makes the bytes durable, lists the blobs, and sets the places of absent blobs, in one commit. Returns the number of
  // places that it set: other blobs are local already, or no version needs them. Errc::invalid: digests that do not
  // agree, places that overlap or lie outside. Add many blobs at a time: each call costs two syncs.
  virtual Result<std::size_t> add(std::span<const FetchedBlob> blobs) = 0;
};

struct CachedPack {
  PackId id = 0;
  std::uint64_t size = 0;        // size of the file, holes included
  std::uint64_t disk_bytes = 0;  // allocated blocks
  std::uint64_t used_ns = 0;     // time of the last open; coarse
  bool pinned = false;           // a pinned version has blobs in it
};

enum class MemoryState : std::uint8_t {
  kept,   // all its bytes are on a disk
  waits,  // it depends on versions of other nodes that are in memory
  lost,   // bytes are lost, and no other version holds them
  gone,   // it was removed
};

struct EvictOptions {
  std::uint64_t disk_bytes_max = 0;  // evicts the least recently used packs until the cache has at most this
  std::optional<VersionId> version;  // only packs with blobs of this version
  bool dry_run = false;
};
struct EvictReport {
  std::uint64_t packs = 0, disk_bytes = 0;  // evicted
  std::uint64_t kept_bytes = 0;             // blocks of the cache afterwards; of these:
  std::uint64_t pinned_bytes = 0;
  std::uint64_t busy_bytes = 0;  // in packs that are being filled
};

// The place of a blob that was damaged there.
struct ForgottenPlace {
  BlobPlace place;
  bool cached = false;  // its pack was cache
};

// A removed version of this node whose content is complete, for the registry. While this lives, gc leaves it, and the
// local bytes that it needs are not evicted.
class PreparedUndelete {
 public:
  virtual ~PreparedUndelete() = default;
  // Returns live versions that together hold all blobs that it needs and this node lacks. They must be live when the
  // registry accepts it.
  virtual const std::vector<VersionName>& relies_on() const = 0;
  virtual bool in_memory() const = 0;  // as VersionNote::in_memory
  virtual void keep() = 0;             // as PreparedPublish::keep()
};

// Mirrors the registry into the store, and prepares undeletes for the registry. Any thread.
class RegistryMirror {
 public:
  virtual ~RegistryMirror() = default;
  // Makes the store a part of a cluster, permanently, in STORE/cluster. No effect if it belongs to this cluster
  // already. From then on only apply() changes names. Errc::unsupported: the store has versions of its own.
  // Errc::exists: it belongs to another cluster, or to another node.
  virtual Status join(const ClusterIdentity& identity) = 0;

  // Applies changes of the registry, in its order, in one commit. A change that was applied before has no effect, so
  // changes may be repeated. `revision` is the registry's revision up to which the store is then complete. It may
  // decrease if the registry was replaced. A full list that takes several calls passes the old revision until its last
  // call, which also brings the removals. Tags and removals of unknown versions are ignored.
  // A version is complete at once if its manifest is local. Those of its `packs` that are local provide their blobs.
  // Snapshots show the changes a moment before they are durable. They are durable when this returns. After a stop of
  // the machine in between, the store has an earlier revision.
  virtual Result<MirrorOutcome> apply(std::span<const MirrorChange> changes, std::uint64_t revision) = 0;

  // Errors as Store::undelete(), but for names and tags, which the registry checks. Errc::invalid: the store belongs to
  // no cluster.
  virtual Result<std::unique_ptr<PreparedUndelete>> prepare_undelete(std::string_view model, std::uint64_t number) = 0;
};

// The content that this node has fetched: manifests of bare versions, and cached packs. Any thread.
class FetchedCache {
 public:
  virtual ~FetchedCache() = default;
  // Gives bare versions their content, in one commit. Ignores versions that have it. Errc::corrupt: the manifest is not
  // the version's, or disagrees with its record. Errc::not_found: no such live version.
  virtual Status adopt(std::span<const Adoption> versions) = 0;

  // Makes a new cached pack of `size` bytes. Errc::no_space.
  virtual Result<std::unique_ptr<FetchPack>> fetch_pack(std::uint64_t size) = 0;
  // Continues an incomplete cached pack. Errc::not_found. Errc::busy: another FetchPack fills it. Errc::invalid: it is
  // not a cached pack, or has lost blobs; make a new one.
  virtual Result<std::unique_ptr<FetchPack>> resume_fetch(PackId pack) = 0;
  virtual Result<std::vector<CachedPack>> cached_packs() = 0;  // least recently used first
  virtual Result<EvictReport> evict(const EvictOptions& options) = 0;

  // Returns the SHA-256 of each chunk, from the .toc of the blob's pack. Errors as Store::open_blob.
  virtual Result<std::vector<Digest>> chunks(const ContentId& id) = 0;

  // Turns an owned pack into cache. The caller guarantees that other copies of all blobs that versions need are
  // permanent. False: the pack stays owned. A publish of this process relies on it, or did a moment ago, or it holds
  // manifests.
  virtual Result<bool> make_evictable(PackId pack) = 0;

  // Reads a blob that versions need. If its stored bytes are damaged or missing, makes the blob absent, so that it is
  // fetched again. Returns the former place. Nothing: the bytes are intact, or no live version needs the blob.
  virtual Result<std::optional<ForgottenPlace>> forget_damaged(const ContentId& id) = 0;
  // Undoes forget_damaged() if the blob could not be fetched: a part of the damaged bytes may be useful.
  virtual Status put_back(const ContentId& id, const BlobPlace& place) = 0;

  // As fetch_pack(), of a file on the file system of the store, which goes from its place: it may have bytes of blobs.
  // The caller guarantees that no process can write to it. Errc::not_found: no such regular file.
  virtual Result<std::unique_ptr<FetchPack>> take_file(const SafePath& file) = 0;
};

// Records whether versions in memory have reached a disk: the registry, or a store without a cluster. Any thread.
class FlushRecords {
 public:
  virtual ~FlushRecords() = default;
  // keep_version records that all bytes of the version are on a disk. lose_version removes the version, and its record
  // says why.
  virtual Status keep_version(std::string_view model, std::uint64_t number) = 0;
  virtual Status lose_version(std::string_view model, std::uint64_t number, std::string_view why) = 0;
};

// Versions that this node published into memory (Snapshot::in_memory()). They are FlushRecords of a store without a
// cluster. Any thread.
class MemoryVersions : public FlushRecords {
 public:
  // Waits until all local bytes that the version needs are on the disk; calls `pace` between pieces of some MiB. After
  // a stop of the machine, checks which bytes are left. flush_version() records the result.
  virtual Result<MemoryState> flush_version(VersionId version, const FlushPace& pace) = 0;
  // Returns the size of the version's packs that may not be on the disk yet.
  virtual Result<std::uint64_t> unsynced_bytes(VersionId version) = 0;
};

// Records how much of the store the origin has. Any thread.
class OriginLedger {
 public:
  virtual ~OriginLedger() = default;
  // Records that these versions are at the origin, so that Snapshot::unsaved() does not list them.
  virtual Status saved(std::span<const VersionId> versions) = 0;

  // Returns the id of the origin that saved() refers to; "": none yet.
  virtual Result<std::string> origin() = 0;
  // Sets the origin. All live versions that this node published become unsaved() again.
  virtual Status set_origin(const std::string& uuid) = 0;

  // Returns the catalog events after `from` (0, or CatalogEvents::end of an earlier call), oldest first, about 1 MiB of
  // the journal at a time. At the end of the journal, `end` is Snapshot::journal_end(). Leaves out events that the
  // journal has lost.
  virtual Result<CatalogEvents> events(std::uint64_t from) = 0;
  // Returns the journal position up to which this origin has all events, as set_replicated() set it. 0 for an unknown
  // origin, and after a rebuild of the index.
  virtual Result<std::uint64_t> replicated(std::string_view origin) = 0;
  virtual Status set_replicated(std::string_view origin, std::uint64_t end) = 0;
};

// Returns OriginLedger::origin() of a store that is open for reading.
Result<std::string> known_origin(Store& store);

// A store together with its four contracts of a cluster, for the owner of the store. Other parts receive only the
// contracts that they use.
class ClusterStore : public Store {
 public:
  // Opens the store for writing as its only daemon: holds STORE/daemon.lock exclusively. Waits for other writers, as
  // options.patience says; `options.write` is implied. Other errors as Store::open.
  static Result<std::unique_ptr<ClusterStore>> open(const std::string& path, const OpenOptions& options);

  // The store owns these objects.
  virtual RegistryMirror& mirror() = 0;
  virtual FetchedCache& cache() = 0;
  virtual MemoryVersions& memory() = 0;
  virtual OriginLedger& ledger() = 0;
};

// Returns the versions of this node that are in memory, oldest first.
Result<std::vector<VersionRow>> versions_in_memory(Store& store);
// Writes a version in memory to the disk, and records the result. `why` is the reason if bytes were lost.
Result<MemoryState> flush_version(MemoryVersions& memory, FlushRecords& records, const VersionRow& version,
                                  std::string_view why, const FlushPace& pace);
// Flushes all versions in memory. For a process that acts as weftd of a store without a
// cluster. A version that has lost bytes is removed, and its record says why.
Status flush_memory(Store& store, MemoryVersions& memory);

}  // namespace weft
