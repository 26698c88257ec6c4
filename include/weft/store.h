// The store of one node: an LMDB index, packs of bytes, manifests, a journal. weft-store.5 describes what is on disk.
//
// Processes: any number read, one writes at a time (commits are short; the long part of an import, reading, hashing and
// writing packs, runs beside others). A reader never waits for a writer.
// Threads: Store, Snapshot::… from any thread; one Snapshot or Import is used by one thread at a time.
// Durability: publish, tag, remove return after their journal record and packs are on disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/content.h"
#include "weft/format.h"
#include "weft/progress.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

// What the index knows of an architecture: a set of items, each with those that must be there for it to be there. The
// larger two sets' intersection, the more two architectures have in common from their inputs on. Ordered by the length
// of the longest path to an item. src/node makes it of vertices; equal architectures give equal lists.
struct ArchItem {
  Digest id;
  std::vector<std::uint32_t> inputs;  // positions of items before it, ascending
};

struct MatchQuery {
  std::vector<ArchItem> items;
  std::string metric;     // decides between versions that share as much; "" for none
  bool smallest = false;  // of the metric's values the smallest is best, not the largest
  std::size_t top = 10;
  std::optional<VersionId> except;
};
struct MatchHit {
  VersionId version = 0;
  std::uint64_t shared = 0;  // items
};

// Names a state of one Store's index: no two states have the same, whatever happens between.
struct IndexState {
  std::uint64_t map = 0, transaction = 0;
  bool operator==(const IndexState&) const = default;
};

// One consistent state of the index. Holding it keeps writers from reusing pages, and after a bounded wait from
// committing: take it, read, drop it; never sleep, print or wait for I/O of others while one is held.
class Snapshot {
 public:
  virtual ~Snapshot() = default;
  virtual IndexState state() const = 0;
  virtual std::uint64_t sequence() const = 0;     // grows with each commit
  virtual std::uint64_t journal_end() const = 0;  // where the journal of this state ends: see Store::commits()

  virtual Result<ModelRow> model(std::string_view name) = 0;
  virtual Result<ModelRow> model(ModelId id) = 0;
  virtual Result<std::vector<ModelRow>> models() = 0;  // by name
  // The entries of models/<prefix>; "" for models/ itself. not_found when no such directory is there. Models whose
  // versions are all removed are not shown (they keep their numbers).
  virtual Result<std::vector<NamespaceEntry>> namespace_entries(std::string_view prefix) = 0;
  virtual Result<NamespaceEntry> namespace_entry(std::string_view prefix, std::string_view component) = 0;

  virtual Result<VersionRow> version(VersionId id) = 0;                         // tombstones too
  virtual Result<VersionRow> version(ModelId model, std::uint64_t number) = 0;  // tombstones too
  virtual Result<std::vector<VersionRow>> versions(ModelId model) = 0;          // by number, tombstones too
  virtual Result<std::vector<TagRow>> tags(ModelId model) = 0;                  // by name
  virtual Result<TagRow> tag(ModelId model, std::string_view name) = 0;
  // The first `count_max` that have it as a parent, by age; tombstones too.
  virtual Result<std::vector<VersionId>> children(VersionId id, std::size_t count_max) = 0;

  virtual Result<LocalRow> local(VersionId id) = 0;
  // Bytes of this published file that no earlier live holder brought: its share of `du`.
  virtual Result<std::uint64_t> owned_bytes(VersionId id, std::uint32_t file) = 0;
  virtual Result<InodeRow> inode(Ino ino) = 0;
  // A version whose hold keeps this view: a live one if there is one. Errc::not_found.
  virtual Result<VersionId> keeper(const InodeRow& view) = 0;

  // Errc::absent: versions need it, and its bytes are not on this node.
  virtual Result<BlobPlace> find_blob(const ContentId& id) = 0;
  // The first live (version, file) that has it, then the others.
  virtual Result<std::vector<std::pair<VersionId, std::uint32_t>>> holders(const ContentId& id) = 0;
  // The same, but of more than 2 × `count_max` only so many from each end.
  virtual Result<std::vector<std::pair<VersionId, std::uint32_t>>> some_holders(const ContentId& id,
                                                                                std::size_t count_max) = 0;
  // The first of them alone: whose owned bytes it counts among. Nothing for a blob that is dead or not there.
  virtual Result<std::optional<std::pair<VersionId, std::uint32_t>>> owner(const ContentId& id) = 0;
  // The live versions that share most items with the query, all of those that share any if there are no more than
  // `top`: by items shared, then by the metric (versions without it, or to whom it is no number, come last), then the
  // earliest published first. Exact. The work grows with the logarithm of the number of versions where the query and
  // the stored part at one place; where they part in several branches at once, with the number of distinct
  // architectures that share some of these branches and not the others.
  virtual Result<std::vector<MatchHit>> match(const MatchQuery& query) = 0;
  // Versions that are removed, and whole because somebody has them open.
  virtual Result<std::uint64_t> open_removed() = 0;
  virtual Result<StoreCounts> counts() = 0;  // walks the index: not for hot paths

  // In a cluster (cluster_store.h). Up to which revision of the registry this state knows everything; 0: of none.
  virtual std::uint64_t registry_revision() const = 0;
  virtual Result<bool> is_bare(VersionId id) = 0;  // live, and its manifest is not here
  // The first `count_max` from `from` on, by id, of live versions that are bare; and of those that this node published
  // and nobody has said to be saved().
  virtual Result<std::vector<VersionId>> bare_versions(VersionId from, std::size_t count_max) = 0;
  virtual Result<std::vector<VersionId>> unsaved(VersionId from, std::size_t count_max) = 0;
  virtual Result<std::vector<VersionId>> pinned() = 0;
};

// Bytes of a pack, open: they stay readable and the same while this lives, whatever gc does. Any thread.
class PackReader {
 public:
  virtual ~PackReader() = default;
  virtual int fd() const = 0;  // O_RDONLY; for pread, mmap, passthrough; stays the reader's
  virtual std::uint64_t size() const = 0;
  virtual PackId id() const = 0;
  // All of it as memory (base/file_map.h), while this lives; null where it cannot be had.
  virtual const std::byte* map() const = 0;
};

// Where an extent's bytes are, in a pack that is open.
struct OpenPlace {
  std::shared_ptr<const PackReader> pack;
  std::uint64_t offset = 0;
};

// A manifest's bytes, verified by their digest; they stay readable while this lives.
class ManifestReader {
 public:
  virtual ~ManifestReader() = default;
  virtual std::span<const std::byte> bytes() const = 0;
};

// Keeps a version whole while it lives, also when the version is removed and gc runs: its manifest, inodes and bytes.
// Any thread; the last copy lets go.
using VersionHold = std::shared_ptr<const void>;

// What a manifest means to the store; src/node computes it from the manifest (the store does not know manifests).
struct VersionContent {
  struct FileContent {
    std::vector<Extent> extents;
  };
  struct ViewContent {
    ViewKey key;
    std::uint32_t links = 0;
  };
  std::vector<FileContent> files;
  std::vector<ViewContent> views;  // by tensor ordinal
  std::uint64_t tree_nodes = 0;    // inode numbers to set aside
  std::uint64_t logical_bytes = 0;
  std::vector<ArchItem> architecture;  // distinct ids
};
using ContentDecoder = std::function<Result<VersionContent>(std::span<const std::byte> manifest)>;

struct PublishRequest {
  std::string model;
  std::vector<std::byte> manifest;
  VersionContent content;
  std::vector<ParentRef> parents;  // must be live, or are left out where they are not declared; ids are not looked at
  std::vector<std::string> elsewhere;
  std::vector<std::string> tags;  // set to the new version in the same commit
  std::string message;
  std::vector<std::pair<std::string, std::string>> metrics;
};

struct PublishOutcome {
  VersionRow version;
  bool made = false;  // false: the newest live version has this content already; `version` is that one (tags are set)
  std::uint64_t new_bytes = 0;     // unique bytes that came in
  std::uint64_t shared_bytes = 0;  // logical bytes that were here (or twice in the input)
};

struct MirroredVersion;
struct ScrubOptions;
struct ScrubReport;

// An import that a registry decides on: its packs and manifest are in place and durable, and what it needs that is here
// stays here (owned from now on, if it was cached), while this lives. Destroyed without keep() it takes back what it
// brought.
class PreparedPublish {
 public:
  virtual ~PreparedPublish() = default;
  // What the registry is to record: all but the number, which is 0.
  virtual const MirroredVersion& record() const = 0;
  // Live versions that between them hold all bytes that this one needs and this node has not. They must live when the
  // registry takes it, as its declared parents must.
  virtual std::span<const std::pair<std::string, std::uint64_t>> relies_on() const = 0;
  virtual std::uint64_t new_bytes() const = 0;  // unique bytes that came in
  // The registry has taken it, or may have: it stays, for Store::mirror or for gc to judge.
  virtual void keep() = 0;
};

// Ingests files, then publishes them as one atomic commit. Destroyed without publish, it leaves nothing behind.
class Import {
 public:
  virtual ~Import() = default;
  // Reads the regular file `fd` (size as fstat says) once, cut into `ranges` (in order, touching, covering the file,
  // none empty), and returns each range's id. Known content is compared with the stored bytes and not stored again; if
  // these differ, it is stored anew and the damaged copy is dead. A file of which nothing large is known becomes a
  // pack of its own. Errc::changed when the file changes meanwhile; `where` starts messages.
  virtual Result<std::vector<Extent>> add(int fd, std::string_view where, std::span<const Range> ranges,
                                          Progress& progress) = 0;
  // Makes everything durable and commits. The Import is spent afterwards, also when this fails.
  virtual Result<PublishOutcome> publish(const PublishRequest& request) = 0;
  // The same, up to the commit. For a store in a cluster.
  virtual Result<std::unique_ptr<PreparedPublish>> prepare(const PublishRequest& request) = 0;
};

// Stores blobs anew whose stored bytes are damaged or missing. Destroyed without commit(), it leaves nothing behind.
// One thread.
class BlobRepair {
 public:
  virtual ~BlobRepair() = default;
  // Reads the blob at `offset` of `fd` and writes it to a new pack. Errc::corrupt: these bytes are not the blob;
  // another source can be tried. `where` starts messages.
  virtual Status add(const ContentId& id, int fd, std::uint64_t offset, std::string_view where, Progress& progress) = 0;
  // Makes the new pack durable and lets the index name it. gc frees the damaged bytes later. A descriptor or mapping of
  // the damaged pack keeps the damaged bytes.
  virtual Status commit() = 0;
};

struct GcOptions {
  bool dry_run = false;
  // In a cluster: the registry's revision, read after the newest removal that gc is to see. Errc::busy while this store
  // does not know everything up to it, or has bare versions: nobody here knows what they need.
  std::uint64_t registry_revision = 0;
  bool all = false;  // rewrite every pack that has dead blobs, however few
};
struct GcReport {
  std::uint64_t versions_reaped = 0;
  std::uint64_t versions_open = 0;                 // removed, and left for the next time: somebody has them open
  std::uint64_t blobs_freed = 0, bytes_freed = 0;  // logical
  std::uint64_t packs_deleted = 0, packs_compacted = 0;
  std::uint64_t disk_bytes_freed = 0;  // when the last reader that has them open closes them
  std::uint64_t busy_packs = 0;        // skipped: being filled, or needed by a publish that the registry decides on
  std::uint64_t dead_bytes = 0;        // listed bytes that no version needs, and whose packs stay as they are
  std::uint64_t packs_waiting = 0;     // not rewritten, because the disk is full; to rewrite them all at once takes
  std::uint64_t bytes_wanted = 0;      // so much space
  std::uint64_t stale_temporaries = 0;
};

struct FsckOptions {
  bool rebuild = false;      // make the index anew from packs, manifests and journal
  bool data = true;          // read and hash every blob
  bool accept_loss = false;  // with rebuild: as RebuildOptions
};
struct RebuildOptions {
  bool accept_loss = false;  // go on without what is lost
  Patience patience = {};
  bool data = true;  // read all blobs that versions need: damaged ones are looked for in other places
};
// A blob that versions may need and whose stored bytes are damaged or missing.
struct DamagedBlob {
  ContentId id;
  BlobPlace place;   // as the index names it
  std::string what;  // one line
};
struct FsckReport {
  std::uint64_t versions = 0, blobs = 0, packs = 0, bytes_read = 0;
  std::vector<std::string> problems;  // one line each
  std::vector<DamagedBlob> damaged;   // their lines are among the problems
  std::vector<std::string> repaired;  // by a rebuild: what was damaged and is whole again
  std::vector<std::string> lost;      // for good, as accepted
  bool rebuilt = false;
  bool refused = false;  // a rebuild that would have to give up what `problems` name: nothing was changed
  bool clean() const { return problems.empty(); }
};

// A commit of the journal, as far as it tells what changed.
struct Commit {
  enum class Kind : std::uint8_t { publish, tags, removal, adoption };
  Kind kind = Kind::publish;
  std::string model;
  std::uint64_t number = 0;  // of the version that came or went
  std::vector<Ino> tags;     // links that were set, moved or deleted
  LocalRow local;            // publish; adoption, which gives the version its content and its views' numbers
  bool bare = false;         // publish
};

// Tells of commits by any process of this machine. For one thread.
class CommitWatch {
 public:
  virtual ~CommitWatch() = default;
  virtual int fd() const = 0;  // readable once somebody may have committed
  virtual void clear() = 0;    // before one looks at what was committed
};

// Which cluster a store belongs to, and as which node. Of STORE/cluster.
struct ClusterIdentity {
  std::string cluster;  // id, as the registry has it
  std::string node;     // uuid
  bool operator==(const ClusterIdentity&) const = default;
};

struct CreateOptions {
  Patience patience = {};  // with another who makes a store there
  std::string group = {};  // may read the store too: new files belong to it; "": the group of the maker
};
struct OpenOptions {
  bool write = false;                     // publish, tag, remove, gc, fsck --rebuild
  ContentDecoder decode;                  // needed to write: a journal that is ahead of the index is replayed
  std::uint64_t map_bytes = 1ULL << 30U;  // of the index at first; it grows by itself
  std::uint64_t reader_wait_ms = 10'000;  // how long a commit waits for a reader that does not end its snapshot
  Patience patience = {};                 // with other writers, gc and fsck
  // A descriptor of open_versions_file() whose open file description other processes have too: what is held through it
  // stays locked when this process ends. -1: the store opens the file itself. Stays the caller's.
  int open_versions = -1;
  // Brings the content of a version whose manifest is not here (Snapshot::is_bare); empty: nobody does. Any thread.
  std::function<Status(VersionId)> look = {};
};

class Fd;        // base/sys.h
class SafePath;  // base/safe_path.h

// The index's file, which every store has, open for reading.
Result<Fd> index_file(const std::string& store_path);
// The file in which versions are locked while they are open; whoever may read the store can read it.
Result<Fd> open_versions_file(const std::string& store_path);

class Store {
 public:
  virtual ~Store() = default;

  // Makes an empty store in `path` (a directory that is empty or not there). Errc::exists, Errc::unsupported (network
  // file system, by name).
  static Status create(const std::string& path, const CreateOptions& options = {});
  // Errc::not_found: no store. Errc::unsupported: another format, network file system. Errc::corrupt: the index does
  // not open; the message says `weft fsck --rebuild`. To write: Errc::busy while a daemon has it, by name;
  // Errc::read_only when it belongs to a cluster.
  static Result<std::unique_ptr<Store>> open(const std::string& path, const OpenOptions& options);
  // Rebuilds an index that may not even open, and mends what can be: one copy of the journal from the other, tables of
  // contents of packs. `decode` as in fsck().
  static Result<FsckReport> rebuild(const std::string& path, const ContentDecoder& decode, Progress& progress,
                                    const RebuildOptions& options = {});
  // Takes away a store that nothing was ever published to and that nobody else has open. False: it stays. Its directory
  // stays too, empty, unless `with_directory`.
  static Result<bool> remove_unused(std::unique_ptr<Store> store, bool with_directory);

  virtual const StoreInfo& info() const = 0;
  virtual const std::string& path() const = 0;
  virtual const SafePath& directory() const = 0;                      // the same, for files below it
  virtual const std::optional<ClusterIdentity>& cluster() const = 0;  // as it was when the store was opened or joined

  virtual Result<std::unique_ptr<Snapshot>> snapshot() = 0;
  // The state that a snapshot taken now would show, for a fraction of what one costs: what was true of that state is
  // true still.
  virtual Result<IndexState> state() = 0;
  // What was committed between two states, given by their Snapshot::journal_end(); oldest first. Errc::invalid when the
  // journal does not reach so far, these are no ends of records in it, or it was repaired between them.
  virtual Result<std::vector<Commit>> commits(std::uint64_t from, std::uint64_t to) = 0;
  virtual Result<std::unique_ptr<CommitWatch>> watch_commits() = 0;

  // Opens the pack that holds `id`. The bytes are there while OpenPlace lives.
  virtual Result<OpenPlace> open_blob(const ContentId& id) = 0;
  // The same where a state of the index had it, without another look: what a state of the index says of a pack stays
  // true as long as the pack is there. Fails when it is gone, or does not list the blob there.
  virtual Result<OpenPlace> open_place(const ContentId& id, const BlobPlace& place) = 0;
  virtual Result<std::shared_ptr<const ManifestReader>> open_manifest(const Digest& digest) = 0;
  // Errc::not_found: there is no such version, or it was removed and gc has taken its content. Else all of it stays
  // while the hold lives.
  virtual Result<VersionHold> hold_version(VersionId version) = 0;
  // With OpenOptions::open_versions, in a process that takes the place of another: holds what that one held, and lets
  // go of all else that was locked through this description. Before any hold_version().
  virtual Result<std::vector<VersionHold>> take_over_holds(std::span<const VersionId> versions) = 0;
  // Gives a bare version its content, as OpenOptions::look does; fine when it has it, or is not live. Errc::absent:
  // there is nobody to ask. Not while this thread holds a Snapshot.
  virtual Status look(VersionId version) = 0;

  virtual Result<std::unique_ptr<Import>> begin_import() = 0;
  // Moves or makes a tag; `number` must be live. An empty optional deletes it.
  virtual Status set_tag(std::string_view model, std::string_view tag, std::optional<std::uint64_t> number) = 0;
  // The version's name goes at once, its tags with it; its bytes stay until gc. Errc::not_found.
  virtual Status remove_version(std::string_view model, std::uint64_t number) = 0;
  // The bytes that this node has of a pinned version are not evicted: fetched packs, assembled files. Journaled; goes
  // with the version.
  virtual Status pin(std::string_view model, std::uint64_t number, bool pinned) = 0;
  virtual Result<GcReport> gc(const GcOptions& options, Progress& progress) = 0;
  // Compares index, packs, manifests and journal. Read-only unless rebuild.
  virtual Result<FsckReport> fsck(const FsckOptions& options, const ContentDecoder& decode, Progress& progress) = 0;
  // Errc::read_only: the store was opened for reading.
  virtual Result<std::unique_ptr<BlobRepair>> begin_repair() = 0;
  // Reads packs from where the last run stopped (scrub.h). Records that in STORE/scrub if this process may write there.
  // When `progress` is cancelled, it stops after the blob that it is at, as when its time is over.
  virtual Result<ScrubReport> scrub(const ScrubOptions& options, Progress& progress) = 0;
};

}  // namespace weft
