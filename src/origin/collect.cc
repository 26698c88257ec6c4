#include "origin/collect.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include <fmt/core.h>

#include "diskformat/pack_names.h"
#include "diskformat/toc.h"
#include "origin/deletions.h"
#include "origin/names.h"
#include "os/file_ops.h"
#include "os/sys.h"
#include "weft/model/manifest.h"
#include "weft/names.h"

namespace weft {
namespace {

constexpr unsigned kAnnounceTries = 8;  // other collections may announce first

// The files that versions need. A blob counts by eight bytes of its root: an unlikely match keeps a pack.
class NeededFiles {
 public:
  void add_manifest(const Digest& manifest) { manifests_.insert(manifest); }
  bool has_manifest(const Digest& manifest) const { return manifests_.contains(manifest); }
  void add_blob(const ContentId& id) { blobs_.push_back(part_of(id)); }
  void add_places(const Places& places) {
    for (const auto& [id, place] : places.blobs) {
      add_blob(id);
      packs_.insert(place.pack);
    }
  }
  void add_unplaced() { all_placed_ = false; }
  const std::set<PackId>& packs() const { return packs_; }  // named by places
  bool all_placed() const { return all_placed_; }           // false: packs() may lack some
  bool has_blob(const ContentId& id) {
    sort();
    return std::ranges::binary_search(blobs_, part_of(id));
  }

 private:
  static std::uint64_t part_of(const ContentId& id) {
    std::uint64_t part = 0;
    std::memcpy(&part, id.root.bytes.data(), sizeof part);
    return part;
  }
  void sort() {
    if (sorted_ == blobs_.size()) return;
    std::ranges::sort(blobs_);
    blobs_.erase(std::unique(blobs_.begin(), blobs_.end()), blobs_.end());
    sorted_ = blobs_.size();
  }

  std::set<Digest> manifests_;
  std::set<PackId> packs_;
  bool all_placed_ = true;
  std::vector<std::uint64_t> blobs_;
  std::size_t sorted_ = 0;
};

class OriginCollecting {
 public:
  OriginCollecting(OriginDir origin, CollectionOrder& order, const OriginGcOptions& options, Progress& progress)
      : origin_(std::move(origin)), order_(order), options_(options), progress_(progress) {
    for (const PurgedVersion& version : options.purged) purged_.emplace(version.name.model, version.uid);
  }

  Result<OriginGcReport> run() {
    WEFT_TRY(directory_, origin_.directory());
    WEFT_CHECK(read_registry());
    listed_before_.insert(origin_.freed().packs.begin(), origin_.freed().packs.end());
    WEFT_CHECK(find_dead());
    if (!options_.dry_run && (!dead_.packs.empty() || !dead_.manifests.empty())) {
      WEFT_CHECK(announce());
      WEFT_CHECK(need_versions());
      WEFT_CHECK(spare_needed());
    }
    WEFT_CHECK(remove_files());
    WEFT_TRY(report_.unfinished_freed,
             sweep_unfinished(directory_, needed_.all_placed() ? &needed_.packs() : nullptr, options_.dry_run));
    if (!options_.dry_run) WEFT_CHECK(sweep_freed(directory_, origin_.freed().sequence));
    return report_;
  }

 private:
  struct Dead {
    std::map<PackId, std::uint64_t> packs;           // pack -> its bytes on the disk
    std::map<Digest, std::uint64_t> manifests;       // digest -> number of dead names
    std::map<PackId, std::vector<ContentId>> blobs;  // pack -> its blobs
  };

  // Compares the journal with a later state of the registry.
  Status read_registry() {
    WEFT_TRY(const OriginNames journal, read_names(origin_, progress_));
    WEFT_TRY(const std::vector<VersionRow> rows, order_.versions());
    std::set<Uuid> known;
    std::set<OriginNames::Name> names;
    for (const VersionRow& row : rows) {
      known.insert(row.uid);
      names.emplace(row.model_name, row.number);
    }
    for (const auto& [name, row] : journal.versions) {
      if (row.removed || known.contains(row.uid)) continue;
      return Error{Errc::changed,
                   fmt::format("origin {}: it has {}, and the registry has {} of that name: the registry has lost "
                               "history, and nothing is freed",
                               origin_.path(), spec_of(name.first, name.second),
                               names.contains(name) ? "another version" : "no version")};
    }
    return need(rows);
  }

  Status need_versions() {
    WEFT_TRY(const std::vector<VersionRow> rows, order_.versions());
    return need(rows);
  }

  bool needs_content(const VersionRow& row) const {
    return !row.removed ||
           (row.removed_ns > options_.horizon_ns && row.lost.empty() && !purged_.contains({row.model_name, row.uid}));
  }

  // Adds the files of versions that were not added before.
  Status need(const std::vector<VersionRow>& rows) {
    progress_.phase("reading the places of versions");
    for (const VersionRow& row : rows) {
      WEFT_CHECK(check_cancelled(progress_));
      if (!needs_content(row) || !counted_.emplace(row.uid, row.manifest, row.model_name, row.number).second) continue;
      ++report_.versions;
      if (row.removed) ++report_.versions_in_grace;
      needed_.add_manifest(row.manifest);
      if (listed_.contains(row.manifest)) continue;
      WEFT_TRY(const bool listed, need_blobs(row));
      if (listed) listed_.insert(row.manifest);
    }
    return {};
  }

  // Adds the blobs of a version. False if they are not known and need not be: without its places, an undelete finds a
  // removed version not at the origin.
  Result<bool> need_blobs(const VersionRow& row) {
    if (const auto places = origin_.places(row.manifest); places.ok()) {
      needed_.add_places(*places);
      return true;
    }
    needed_.add_unplaced();
    auto bytes = origin_.manifest(row.manifest);
    if (!bytes.ok()) bytes = order_.manifest(row);
    const auto manifest = bytes.ok() ? decode_manifest(*bytes) : Result<Manifest>(bytes.error());
    if (!manifest.ok() && row.removed) return false;
    if (!manifest.ok())
      return Error{Errc::busy, fmt::format("{}: its manifest is neither at the origin nor on a node that answers, so "
                                           "the packs that it needs are not known and nothing is freed: {}",
                                           spec_of(row), manifest.error().message)};
    for (const File& file : manifest->files)
      for (const Extent& extent : file.extents) needed_.add_blob(extent.id);
    return true;
  }

  Status find_dead() {
    WEFT_CHECK(find_dead_manifests("manifests"));
    WEFT_CHECK(find_dead_manifests("places"));
    progress_.phase("reading tables of contents");
    WEFT_TRY(const auto packs, origin_.packs());
    std::set<PackId> present(packs.begin(), packs.end());
    for (const PackId pack : packs) {
      WEFT_CHECK(check_cancelled(progress_));
      WEFT_CHECK(judge(pack));
    }
    // A collection that was stopped may have deleted the table of contents alone.
    for (const PackId pack : origin_.freed().packs)
      if (!present.contains(pack) && !is_needed(pack, {}) && stat_file(pack_path(directory_, pack)).ok())
        add_dead(pack, {});
    return {};
  }

  Status find_dead_manifests(const char* folder) {
    WEFT_TRY(const auto names, list_manifest_names(directory_ / folder));
    for (const ManifestName& name : names) {
      if (needed_.has_manifest(name.digest)) continue;
      std::uint64_t& count = dead_.manifests[name.digest];
      count = std::max(count, name.n + 1);
    }
    return {};
  }

  // A pack whose table of contents cannot be read stays: it may have blobs that a version needs.
  Status judge(PackId pack) {
    const auto toc = origin_.toc(pack);
    if (!toc.ok()) return ++report_.packs, Status{};
    std::uint64_t dead_bytes = 0;
    std::vector<ContentId> blobs;
    for (const PackEntry& entry : toc->entries) {
      blobs.push_back(entry.id);
      if (!needed_.has_blob(entry.id)) dead_bytes += entry.id.length;
    }
    if (!is_needed(pack, blobs)) return add_dead(pack, std::move(blobs)), Status{};
    ++report_.packs;
    report_.dead_bytes += dead_bytes;
    return {};
  }

  // A pack that an earlier list names is needed only by versions whose places name it: all later ones have their blobs
  // elsewhere, because a collection that was stopped may still delete the pack.
  bool is_needed(PackId pack, const std::vector<ContentId>& blobs) {
    if (needed_.packs().contains(pack)) return true;
    if (listed_before_.contains(pack) && needed_.all_placed()) return false;
    return std::ranges::any_of(blobs, [this](const ContentId& id) { return needed_.has_blob(id); });
  }

  void add_dead(PackId pack, std::vector<ContentId> blobs) {
    const auto st = stat_file(pack_path(directory_, pack));
    dead_.packs.emplace(pack, st.ok() ? allocated_bytes(*st) : 0);
    dead_.blobs.emplace(pack, std::move(blobs));
  }

  // Returns the list of this collection: the dead files, and those of the last list, except packs that places name.
  FreedFiles list(std::uint64_t sequence) const {
    FreedFiles list;
    list.sequence = sequence;
    for (const auto& [pack, bytes] : dead_.packs) list.packs.push_back(pack);
    for (const PackId pack : origin_.freed().packs)
      if (!dead_.packs.contains(pack) && !needed_.packs().contains(pack)) list.packs.push_back(pack);
    std::ranges::sort(list.packs);
    std::map<Digest, std::uint64_t> manifests(origin_.freed().manifests.begin(), origin_.freed().manifests.end());
    for (const auto& [digest, names] : dead_.manifests) {
      std::uint64_t& count = manifests[digest];
      count = std::max(count, names);
    }
    list.manifests.assign(manifests.begin(), manifests.end());
    return list;
  }

  Status announce() {
    for (unsigned tries = 1;; ++tries) {
      const OriginCollection latest = order_.latest();
      if (latest.origin == origin_.uuid()) WEFT_CHECK(origin_.know_freed(latest.sequence));
      const std::uint64_t sequence = origin_.freed().sequence + 1;
      Status done = put_freed(directory_, list(sequence));
      if (done.ok()) done = order_.announce({origin_.uuid(), sequence, options_.horizon_ns});
      WEFT_CHECK(origin_.know_freed(0));
      if (done.ok()) return {};
      const bool again = done.error().code == Errc::exists || done.error().code == Errc::changed;
      if (!again || tries == kAnnounceTries) return done;
      WEFT_CHECK(check_cancelled(progress_));
    }
  }

  // Takes from the dead files those that a version needs since the announcement.
  Status spare_needed() {
    std::erase_if(dead_.manifests, [this](const auto& one) { return needed_.has_manifest(one.first); });
    std::erase_if(dead_.packs, [this](const auto& one) { return is_needed(one.first, dead_.blobs.at(one.first)); });
    return {};
  }

  Status remove_files() {
    progress_.phase("deleting");
    for (const auto& [digest, names] : dead_.manifests) {
      WEFT_CHECK(check_cancelled(progress_));
      for (std::uint64_t n = 0; n < names && !options_.dry_run; ++n)
        WEFT_CHECK(remove_manifest(directory_, {digest, n}));
      ++report_.manifests_freed;
    }
    for (const auto& [pack, bytes] : dead_.packs) {
      WEFT_CHECK(check_cancelled(progress_));
      if (!options_.dry_run) WEFT_CHECK(remove_pack(directory_, pack));
      ++report_.packs_freed;
      report_.bytes_freed += bytes;
    }
    return {};
  }

  OriginDir origin_;
  SafePath directory_;
  CollectionOrder& order_;
  const OriginGcOptions& options_;
  std::set<std::pair<std::string, Uuid>> purged_;  // model and identity: a version may have got another number
  Progress& progress_;
  OriginGcReport report_;
  NeededFiles needed_;
  // Versions whose files are in needed_. An identity alone could be forged.
  std::set<std::tuple<Uuid, Digest, std::string, std::uint64_t>> counted_;
  std::set<Digest> listed_;         // manifests whose blobs are in needed_
  std::set<PackId> listed_before_;  // packs that an earlier list names
  Dead dead_;
};

}  // namespace

Result<OriginGcReport> collect_origin(OriginDir origin, CollectionOrder& order, const OriginGcOptions& options,
                                      Progress& progress) {
  return OriginCollecting(std::move(origin), order, options, progress).run();
}

}  // namespace weft
