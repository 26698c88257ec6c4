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

#include "weft/pack.h"
#include "weft/progress.h"
#include "weft/result.h"
#include "weft/store_rows.h"
#include "weft/version_content.h"

namespace weft {

enum class Durability : std::uint8_t;  // publish.h

class BlobRepair;       // fsck.h
class CommitWatch;      // commits.h
class Import;           // publish.h
class Snapshot;         // snapshot.h
struct CommitBatch;     // commits.h
struct FsckOptions;     // fsck.h
struct FsckReport;      // fsck.h
struct GcOptions;       // gc.h
struct GcReport;        // gc.h
struct IndexState;      // snapshot.h
struct RebuildOptions;  // fsck.h
struct ScrubOptions;    // scrub.h
struct ScrubReport;     // scrub.h

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

class Fd;        // os/sys.h
class SafePath;  // os/safe_path.h

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
                                    const RebuildOptions& options);
  static Result<FsckReport> rebuild(const std::string& path, const ContentDecoder& decode, Progress& progress);
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
  // Walk the index in many snapshots, so that what they say may be of no one state. Not for hot paths.
  virtual Result<StoreCounts> counts() = 0;
  virtual Result<std::uint64_t> open_removed() = 0;  // as StoreCounts::open_removed
  // A version whose hold keeps this view: a live one if there is one. Errc::not_found.
  virtual Result<VersionId> keeper(const InodeRow& view) = 0;
  // What was committed since the state whose Snapshot::journal_end() is `from`, or from a Commit's position on; about
  // a MiB of the journal at once. Errc::invalid when the journal does not reach so far, `from` is no end of a record in
  // it, or it was repaired since.
  virtual Result<CommitBatch> commits(std::uint64_t from) = 0;
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

  // Durability::memory: its publish does not wait until the bytes are on the disk (ClusterStore::settle_version()); all
  // others do.
  virtual Result<std::unique_ptr<Import>> begin_import(Durability durability) = 0;
  // Moves or makes a tag; `number` must be live. An empty optional deletes it.
  virtual Status set_tag(std::string_view model, std::string_view tag, std::optional<std::uint64_t> number) = 0;
  // The names of these versions go at once, their tags with them; their bytes stay until gc. One commit takes the first
  // of them, as many as may hold the other writers up; returns how many. Errc::not_found: the first is not there.
  virtual Result<std::size_t> remove_versions(std::span<const VersionName> versions) = 0;
  Status remove_version(std::string_view model, std::uint64_t number) {
    const VersionName version{std::string(model), number};
    WEFT_CHECK(remove_versions({&version, 1}));
    return {};
  }
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
