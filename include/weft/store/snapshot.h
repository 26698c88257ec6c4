// One consistent state of a store's index (store/reading/snapshot.cc), and names of versions in it
// (store/reading/resolve.cc).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

enum class Durability : std::uint8_t;  // publish.h

namespace limits {
// Most rows of a table that one snapshot reads, because a commit waits for readers of the state before the last.
// walk.h walks more rows than this.
inline constexpr std::size_t kRowsPerSnapshot = 4096;
}  // namespace limits

struct MatchHit;    // arch_match.h
struct MatchQuery;  // arch_match.h

// Identifies a state of one Store's index. No two states have the same value, whatever happens between them.
struct IndexState {
  std::uint64_t map = 0, transaction = 0;
  bool operator==(const IndexState&) const = default;
};

// A page of a listing, which reads at most limits::kRowsPerSnapshot rows, or `rows_max`. The listing continues at
// `next`, in this snapshot or a later one; "": this is the last page. A page may be empty without being the last.
template <class Row>
struct Page {
  std::vector<Row> rows;
  std::string next;
};

// One consistent state of the index. While it is held, writers cannot reuse pages, and commits wait for a bounded time
// and then fail. So take it, read, drop it; never sleep, print or wait for foreign I/O while one is held. A listing
// begins at `from` "" and continues at the `next` of the previous page, or after any row: `from` is then the row's
// name, or its number or id in decimal digits. The row may be deleted by then.
class Snapshot {
 public:
  virtual ~Snapshot() = default;
  virtual IndexState state() const = 0;
  virtual std::uint64_t sequence() const = 0;       // grows with each commit
  virtual std::uint64_t lineage_clock() const = 0;  // publishes, removals, undeletes, renames and descriptions so far
  virtual std::uint64_t last_rename() const = 0;    // the clock's tick at the last rename of any model; 0: none
  virtual std::uint64_t journal_end() const = 0;    // end of this state's journal: see Store::commits()

  // Errc::not_found; if the model of this name was renamed, the message has the new name.
  virtual Result<ModelRow> model(std::string_view name) = 0;
  virtual Result<ModelRow> model(ModelId id) = 0;
  // Returns the last model that had this name and was renamed; nothing if there is none.
  virtual Result<std::optional<ModelRow>> renamed(std::string_view name) = 0;
  // Lists the models whose names begin with `prefix`, by name.
  virtual Result<Page<ModelRow>> models(std::string_view from = {}, std::string_view prefix = {},
                                        std::size_t rows_max = limits::kRowsPerSnapshot) = 0;
  // Lists the entries of models/<prefix>; "" for models/ itself. Errc::not_found: there is no such directory. Models
  // whose versions are all removed are not shown (they keep their numbers).
  virtual Result<Page<NamespaceEntry>> namespace_entries(std::string_view prefix, std::string_view from = {},
                                                         std::size_t rows_max = limits::kRowsPerSnapshot) = 0;
  virtual Result<NamespaceEntry> namespace_entry(std::string_view prefix, std::string_view component) = 0;

  virtual Result<VersionRow> version(VersionId id) = 0;                         // tombstones too
  virtual Result<VersionRow> version(ModelId model, std::uint64_t number) = 0;  // tombstones too
  virtual Result<Page<VersionRow>> versions(
      ModelId model, std::string_view from = {},
      std::size_t rows_max = limits::kRowsPerSnapshot) = 0;  // by number, tombstones too
  // with_revision returns the live version of the model that a revision of kCommitDigits names: the oldest one whose
  // manifest's digest begins with these digits, or else the newest one that has this source commit. Returns nothing if
  // there is none, or for any other text. distinct lists all live versions that are the oldest with their content, by
  // digest.
  virtual Result<std::optional<VersionId>> with_revision(ModelId model, std::string_view revision) = 0;
  virtual Result<Page<VersionId>> distinct(ModelId model, std::string_view from = {},
                                           std::size_t rows_max = limits::kRowsPerSnapshot) = 0;
  virtual Result<Page<TagRow>> tags(ModelId model, std::string_view from = {},
                                    std::size_t rows_max = limits::kRowsPerSnapshot) = 0;  // by name
  virtual Result<TagRow> tag(ModelId model, std::string_view name) = 0;
  // Lists the changes of the model's tags that this store has seen, newest first; those of deleted tags and of removed
  // versions too. A row is not valid as `from`; only Page::next is.
  virtual Result<Page<TagMove>> tag_moves(ModelId model, std::string_view from = {}) = 0;
  // Lists the tags that lead to this version, by name.
  virtual Result<Page<std::string>> tags_of(ModelId model, std::uint64_t number, std::string_view from = {}) = 0;
  // Lists the versions with this parent, by age; tombstones too.
  virtual Result<Page<VersionId>> children(VersionId id, std::string_view from = {},
                                           std::size_t rows_max = limits::kRowsPerSnapshot) = 0;

  virtual Result<LocalRow> local(VersionId id) = 0;
  // Returns the bytes of this published file that no earlier live file has: its share of `du`.
  virtual Result<std::uint64_t> owned_bytes(VersionId id, std::uint32_t file) = 0;
  // Lists the owned bytes of all files of a version, in their order; none while it is bare. A row is not valid as
  // `from`; only Page::next is.
  virtual Result<Page<std::uint64_t>> owned_by_files(VersionId id, std::string_view from = {}) = 0;
  virtual Result<InodeRow> inode(Ino ino) = 0;

  // Errc::absent: versions need the blob, and its bytes are not on this node.
  virtual Result<BlobPlace> find_blob(const ContentId& id) = 0;
  // Returns live holders (version, file) of a blob, the first one first. Of more than 2 × `count_max` holders, returns
  // `count_max` from each end. Nothing if the blob is dead or not indexed.
  virtual Result<std::vector<std::pair<VersionId, std::uint32_t>>> some_holders(const ContentId& id,
                                                                                std::size_t count_max) = 0;
  // Returns the first holder, which owns the blob's bytes. Nothing if the blob is dead or not indexed.
  virtual Result<std::optional<std::pair<VersionId, std::uint32_t>>> owner(const ContentId& id) = 0;
  // Returns the `top` live versions that share most items with the query, or all that share any. They are sorted by
  // shared items, then by the metric (versions without it, or with a value that is not a number, come last), then the
  // earliest published first. Exact. If the query and the stored architectures part at one place, the work grows with
  // the logarithm of the number of versions. If they part in several branches at once, it grows with the number of
  // distinct architectures that share some of these branches and not the others.
  virtual Result<std::vector<MatchHit>> match(const MatchQuery& query) = 0;

  // For a cluster (cluster_store.h). Returns the revision of the registry up to which this state is complete; 0: none.
  virtual std::uint64_t registry_revision() const = 0;
  virtual Result<bool> is_bare(VersionId id) = 0;  // live, and its manifest is not local
  // bare_versions, unsaved, in_memory and pinned list live versions, by id, at most `count_max` from `from` on.
  // unsaved: versions of this node that are not saved() yet.
  virtual Result<std::vector<VersionId>> bare_versions(VersionId from, std::size_t count_max) = 0;
  virtual Result<std::vector<VersionId>> unsaved(VersionId from, std::size_t count_max) = 0;
  // Returns where the bytes of a live version are, as far as this node knows: at the origin only if it wrote them there
  // itself.
  virtual Result<Durability> durability(const VersionRow& version) = 0;
  // Versions whose bytes may be lost with their publisher's memory (VersionNote::in_memory).
  virtual Result<std::vector<VersionId>> in_memory(VersionId from, std::size_t count_max) = 0;
  virtual Result<std::vector<VersionId>> pinned(VersionId from, std::size_t count_max) = 0;
  // As pinned(), of removed versions whose content gc has not freed.
  virtual Result<std::vector<VersionId>> unreaped(VersionId from, std::size_t count_max) = 0;
  virtual Result<std::vector<std::pair<VersionId, std::uint64_t>>>
  purged() = 0;  // removed versions that were purged, and when
};

// Resolves "MODEL[@V]" in a snapshot: V is a number, a tag, "latest" or nothing (latest). Errc::not_found also for a
// removed version; the message lists the existing ones.
Result<VersionRow> resolve_version(Snapshot& snapshot, std::string_view spec);
// Like resolve_version(), but also accepts the number of a removed version.
Result<VersionRow> resolve_or_tombstone(Snapshot& snapshot, std::string_view spec);
// Returns the live version with this number, written as it would be printed. Errc::not_found.
Result<VersionRow> numbered_version(Snapshot& snapshot, ModelId model, std::string_view number);

inline constexpr std::string_view kMainRevision = "main";

// A revision of a model, as clients of a model hub write it, and the version that it names.
struct ModelRevision {
  enum class Kind : std::uint8_t { main, tag, number, commit };
  Kind kind = Kind::main;
  VersionRow version;
  std::uint64_t time_ns = 0;  // when the revision began to name this version
  Ino tag_ino = 0;            // of a tag: TagRow::ino
};
// Resolves `main` (the tag main, or else the newest version), a tag, a number, or a commit as in with_revision(). A tag
// hides a commit of the same name. Errc::not_found.
Result<ModelRevision> resolve_revision(Snapshot& snapshot, const ModelRow& model, std::string_view revision);

}  // namespace weft
