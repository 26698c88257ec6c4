// One consistent state of a store's index (store/snapshot.cc).
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
// A snapshot reads at most so many rows of a table before it ends: a commit waits for the readers of the state before
// the last. renewed.h and listing.h walk more rows than these.
inline constexpr std::size_t kRowsPerSnapshot = 4096;
}  // namespace limits

struct MatchHit;    // arch_match.h
struct MatchQuery;  // arch_match.h

// Names a state of one Store's index: no two states have the same, whatever happens between.
struct IndexState {
  std::uint64_t map = 0, transaction = 0;
  bool operator==(const IndexState&) const = default;
};

// A part of a listing, for which at most limits::kRowsPerSnapshot rows are read, or as many as the caller says. `next`
// says where the listing goes on, in this snapshot or in a later one; "": this is the last part. A part may have no
// rows and not be the last.
template <class Row>
struct Page {
  std::vector<Row> rows;
  std::string next;
};

// One consistent state of the index. Holding it keeps writers from reusing pages, and after a bounded wait from
// committing: take it, read, drop it; never sleep, print or wait for I/O of others while one is held. A listing begins
// at `from` "" and goes on at the `next` of the page before, or behind any row: `from` is then the row's name, or in
// decimal digits its number or id. The row may be gone by then.
class Snapshot {
 public:
  virtual ~Snapshot() = default;
  virtual IndexState state() const = 0;
  virtual std::uint64_t sequence() const = 0;       // grows with each commit
  virtual std::uint64_t lineage_clock() const = 0;  // publishes and removals until then
  virtual std::uint64_t journal_end() const = 0;    // where the journal of this state ends: see Store::commits()

  virtual Result<ModelRow> model(std::string_view name) = 0;
  virtual Result<ModelRow> model(ModelId id) = 0;
  // By name, those whose names begin with `prefix`.
  virtual Result<Page<ModelRow>> models(std::string_view from = {}, std::string_view prefix = {},
                                        std::size_t rows_max = limits::kRowsPerSnapshot) = 0;
  // The entries of models/<prefix>; "" for models/ itself. not_found when no such directory is there. Models whose
  // versions are all removed are not shown (they keep their numbers).
  virtual Result<Page<NamespaceEntry>> namespace_entries(std::string_view prefix, std::string_view from = {},
                                                         std::size_t rows_max = limits::kRowsPerSnapshot) = 0;
  virtual Result<NamespaceEntry> namespace_entry(std::string_view prefix, std::string_view component) = 0;

  virtual Result<VersionRow> version(VersionId id) = 0;                         // tombstones too
  virtual Result<VersionRow> version(ModelId model, std::uint64_t number) = 0;  // tombstones too
  virtual Result<Page<VersionRow>> versions(
      ModelId model, std::string_view from = {},
      std::size_t rows_max = limits::kRowsPerSnapshot) = 0;  // by number, tombstones too
  // The oldest live version of the model whose manifest's digest begins with these kRevisionBytes; nothing if there is
  // none. All that are the oldest with their content, by digest.
  virtual Result<std::optional<VersionId>> first_with(ModelId model, std::span<const std::byte> revision) = 0;
  virtual Result<Page<VersionId>> distinct(ModelId model, std::string_view from = {},
                                           std::size_t rows_max = limits::kRowsPerSnapshot) = 0;
  virtual Result<Page<TagRow>> tags(ModelId model, std::string_view from = {},
                                    std::size_t rows_max = limits::kRowsPerSnapshot) = 0;  // by name
  virtual Result<TagRow> tag(ModelId model, std::string_view name) = 0;
  // The names of those that lead to this version, by name.
  virtual Result<Page<std::string>> tags_of(ModelId model, std::uint64_t number, std::string_view from = {}) = 0;
  // Versions that have it as a parent, by age; tombstones too.
  virtual Result<Page<VersionId>> children(VersionId id, std::string_view from = {},
                                           std::size_t rows_max = limits::kRowsPerSnapshot) = 0;

  virtual Result<LocalRow> local(VersionId id) = 0;
  // Bytes of this published file that no earlier live holder brought: its share of `du`.
  virtual Result<std::uint64_t> owned_bytes(VersionId id, std::uint32_t file) = 0;
  // The same of its files, in their order; none while it is bare. `from` is the `next` of another page alone.
  virtual Result<Page<std::uint64_t>> owned_by_files(VersionId id, std::string_view from = {}) = 0;
  virtual Result<InodeRow> inode(Ino ino) = 0;

  // Errc::absent: versions need it, and its bytes are not on this node.
  virtual Result<BlobPlace> find_blob(const ContentId& id) = 0;
  // The live (version, file) that have it, the first first; of more than 2 × `count_max` only so many from each end.
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

  // In a cluster (cluster_store.h). Up to which revision of the registry this state knows everything; 0: of none.
  virtual std::uint64_t registry_revision() const = 0;
  virtual Result<bool> is_bare(VersionId id) = 0;  // live, and its manifest is not here
  // The first `count_max` from `from` on, by id, of live versions that are bare; of those that this node published and
  // nobody has said to be saved(); of those that are pinned.
  virtual Result<std::vector<VersionId>> bare_versions(VersionId from, std::size_t count_max) = 0;
  virtual Result<std::vector<VersionId>> unsaved(VersionId from, std::size_t count_max) = 0;
  // Where the bytes of a live version are, as far as this node knows: at the origin only if it took them there itself.
  virtual Result<Durability> durability(const VersionRow& version) = 0;
  // Of those whose bytes may go with their publisher's memory (VersionNote::in_memory).
  virtual Result<std::vector<VersionId>> in_memory(VersionId from, std::size_t count_max) = 0;
  virtual Result<std::vector<VersionId>> pinned(VersionId from, std::size_t count_max) = 0;
};

}  // namespace weft
