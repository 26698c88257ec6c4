// The store of one node (store/store.cc): an LMDB index, packs of bytes, manifests, a journal. weft-store.5 describes
// its files.
//
// Processes: any number read, one writes at a time (commits are short; the long part of an import, reading, hashing and
// writing packs, runs in parallel). A reader never waits for a writer.
// Threads: Store, Snapshot::… from any thread; one Snapshot or Import is used by one thread at a time.
// Durability: publish, tag, remove return after their journal record and packs are on disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/bytes/pack.h"
#include "weft/model/version_content.h"
#include "weft/progress.h"
#include "weft/result.h"
#include "weft/store_rows.h"

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
  Patience patience = {};  // for another process that makes a store there
  std::string group = {};  // may read the store too; new files belong to it; "": the maker's group
};
struct OpenOptions {
  bool write = false;                     // for publish, tag, remove, gc, fsck --rebuild
  ContentDecoder decode;                  // needed to write: a journal that is ahead of the index is replayed
  std::uint64_t map_bytes = 1ULL << 30U;  // initial size of the index's map, which grows by itself
  std::uint64_t reader_wait_ms = 10'000;  // how long a commit waits for a reader that keeps its snapshot
  Patience patience = {};                 // for other writers, gc and fsck
  // A descriptor of open_versions_file() that shares its open file description with other processes. Its locks stay
  // when this process ends. -1: the store opens the file itself. Owned by the caller.
  int open_versions = -1;
};

// Says whether a removal takes a version that has tags.
enum class Tagged : std::uint8_t {
  refused,  // Errc::exists: the version stays
  removed,  // the tags go with it
};

class Fd;        // os/sys.h
class SafePath;  // os/safe_path.h

// Opens the index file, which every store has, for reading.
Result<Fd> index_file(const std::string& store_path);
// Opens the file in which open versions are locked. Every reader of the store can read it.
Result<Fd> open_versions_file(const std::string& store_path);

class Store {
 public:
  virtual ~Store() = default;

  // Makes an empty store in `path`, a directory that is empty or does not exist. Errc::exists, Errc::unsupported
  // (network file system, by name).
  static Status create(const std::string& path, const CreateOptions& options = {});
  // Errc::not_found: no store. Errc::unsupported: another format, network file system. Errc::corrupt: the index cannot
  // be opened; the message says `weft fsck --rebuild`. For writing: Errc::busy while a daemon has the store, by name;
  // Errc::read_only if it belongs to a cluster.
  static Result<std::unique_ptr<Store>> open(const std::string& path, const OpenOptions& options);
  // Rebuilds an index, even one that cannot be opened, and repairs what it can: one copy of the journal from the other,
  // and tables of contents of packs. `decode` as in fsck().
  static Result<FsckReport> rebuild(const std::string& path, const ContentDecoder& decode, Progress& progress,
                                    const RebuildOptions& options);
  static Result<FsckReport> rebuild(const std::string& path, const ContentDecoder& decode, Progress& progress);
  // Removes a store to which nothing was ever published and which no other process has open. False: it stays. Its empty
  // directory stays too, unless `with_directory`.
  static Result<bool> remove_unused(std::unique_ptr<Store> store, bool with_directory);

  virtual const StoreInfo& info() const = 0;
  virtual const std::string& path() const = 0;
  virtual const SafePath& directory() const = 0;                      // path() for access to files below it
  virtual const std::optional<ClusterIdentity>& cluster() const = 0;  // as of open() or join()

  virtual Result<std::unique_ptr<Snapshot>> snapshot() = 0;
  // Returns the state that a snapshot would show now, at a fraction of its cost. Facts from a snapshot of an equal
  // state are still true.
  virtual Result<IndexState> state() = 0;
  // Walks the index in many snapshots, so the counts may mix states. Not for hot paths.
  virtual Result<StoreCounts> counts() = 0;
  virtual Result<std::uint64_t> open_removed() = 0;  // as StoreCounts::open_removed
  // Returns a version that holds this tensor view, a live one if possible. Errc::not_found.
  virtual Result<VersionId> keeper(const InodeRow& view) = 0;
  // Returns the commits since the state whose Snapshot::journal_end() is `from`, or since a Commit's position; about 1
  // MiB of the journal at a time. Errc::invalid: the journal does not reach so far, `from` is not the end of a record,
  // or the journal was repaired since.
  virtual Result<CommitBatch> commits(std::uint64_t from) = 0;
  virtual Result<std::unique_ptr<CommitWatch>> watch_commits() = 0;

  // Opens the pack that holds `id`. Its bytes are there while OpenPlace lives.
  virtual Result<OpenPlace> open_blob(const ContentId& id) = 0;
  // Opens a place that a state of the index had, without another lookup: the place stays true as long as its pack
  // exists. Fails if the pack is gone or does not list the blob there.
  virtual Result<OpenPlace> open_place(const ContentId& id, const BlobPlace& place) = 0;
  virtual Result<std::shared_ptr<const ManifestReader>> open_manifest(const Digest& digest) = 0;
  // Errc::not_found: there is no such version, or it was removed and gc has freed its content. Otherwise all of it
  // stays while the hold lives.
  virtual Result<VersionHold> hold_version(VersionId version) = 0;
  // For a process that replaces another one, with OpenOptions::open_versions: holds the versions that the other held,
  // and releases all other locks of this description. Call before any hold_version().
  virtual Result<std::vector<VersionHold>> take_over_holds(std::span<const VersionId> versions) = 0;

  // With Durability::memory the publish does not wait until the bytes are on the disk
  // (MemoryVersions::flush_version()).
  virtual Result<std::unique_ptr<Import>> begin_import(Durability durability) = 0;
  // Makes or moves a tag; `number` must be live. Without a number, deletes the tag. `by`: for Snapshot::tag_moves().
  virtual Status set_tag(std::string_view model, std::string_view tag, std::optional<std::uint64_t> number,
                         const Author& by = {}) = 0;
  // Protects a tag, so that it binds all authors but `by`, or ends that. Errc::not_found: there is no such tag.
  // Errc::permission, as for each change of a tag or of its version's name: the tag is protected from `by`.
  virtual Status protect_tag(std::string_view model, std::string_view tag, bool on, const Author& by = {}) = 0;
  // Changes the message and metrics of a live version. Errc::invalid: values that no version can have.
  virtual Status describe(std::string_view model, std::uint64_t number, const DescriptionChange& change) = 0;
  // Gives a model or a data set a name that no other model has or had. The former name is then free, and its version
  // numbers stay used. Errc::not_found: no live model; Errc::exists: another model has or had `to`, or one would hide
  // another.
  virtual Status rename_model(std::string_view model, std::string_view to, const Author& by = {}) = 0;
  // Removes the names of these versions and their tags; their bytes stay until gc. One commit removes only as many of
  // the first versions as delay other writers for a short time. Returns their number. Errc::not_found: the first does
  // not exist. Errc::exists: `tagged` refuses the first. `by`: as for set_tag().
  virtual Result<std::size_t> remove_versions(std::span<const VersionName> versions, Tagged tagged,
                                              const Author& by = {}) = 0;
  Status remove_version(std::string_view model, std::uint64_t number) {
    const VersionName version{std::string(model), number};
    WEFT_CHECK(remove_versions({&version, 1}, Tagged::removed));
    return {};
  }
  // Makes a removed version live again, with the tags that lead to no other version by now. Errc::exists: it is not
  // removed, or its name would hide another or has another kind now. Errc::absent: gc has freed its content, or bytes
  // of it are lost; the message says which. Errc::not_found: there was no such version. `by`: as for set_tag().
  virtual Result<UndeletedVersion> undelete(std::string_view model, std::uint64_t number, const Author& by = {}) = 0;
  // Pins a version, or removes its pin. Local bytes of a pinned version are not evicted: fetched packs, assembled
  // files. Journaled; ends with the version.
  virtual Status pin(std::string_view model, std::uint64_t number, bool pinned) = 0;
  virtual Result<GcReport> gc(const GcOptions& options, Progress& progress) = 0;
  // Compares index, packs, manifests and journal. Read-only without rebuild.
  virtual Result<FsckReport> fsck(const FsckOptions& options, const ContentDecoder& decode, Progress& progress) = 0;
  // Errc::read_only: the store was opened for reading.
  virtual Result<std::unique_ptr<BlobRepair>> begin_repair() = 0;
  // Reads packs from where the last run stopped (scrub.h). Records the position in STORE/scrub if this process may
  // write there. If `progress` is cancelled or the time is over, it stops after the current blob.
  virtual Result<ScrubReport> scrub(const ScrubOptions& options, Progress& progress) = 0;
};

}  // namespace weft
