#include "origin/collect.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <utility>

#include "diskformat/dead_share.h"
#include "diskformat/pack_names.h"
#include "diskformat/toc.h"
#include "origin/deletions.h"
#include "origin/rewrite.h"
#include "origin/version_needs.h"
#include "os/file_ops.h"
#include "os/sys.h"

namespace weft {
namespace {

constexpr unsigned kAnnounceTries = 8;  // other collections may announce first

class OriginCollecting {
 public:
  OriginCollecting(OriginDir origin, CollectionOrder& order, const OriginGcOptions& options, Progress& progress)
      : origin_(std::move(origin)), order_(order), options_(options), progress_(progress) {}

  Result<OriginGcReport> run() {
    WEFT_TRY(directory_, origin_.directory());
    WEFT_TRY(now_ns_, time_at_origin(directory_));
    WEFT_CHECK(follow(order_.latest()));
    WEFT_CHECK(needs_.read_first());
    listed_before_.insert(origin_.freed().packs.begin(), origin_.freed().packs.end());
    WEFT_CHECK(find_dead());
    if (options_.dry_run) {
      report_.packs_rewritten = rewrites_.wanted();
    } else {
      if (!dead_.packs.empty() && rewrites_.wanted() > 0) WEFT_CHECK(free_before_copies());
      WEFT_CHECK(announce_and_move());
    }
    WEFT_CHECK(remove_files());
    WEFT_TRY(report_.unfinished_freed,
             sweep_unfinished(directory_, needed_.all_placed() ? &needed_.packs() : nullptr, options_.dry_run));
    if (!options_.dry_run) WEFT_CHECK(sweep_lists());
    report_.versions = needs_.versions();
    report_.versions_in_grace = needs_.versions_in_grace();
    return report_;
  }

 private:
  struct Dead {
    std::map<PackId, std::uint64_t> packs;           // pack -> its bytes on the disk
    std::map<Digest, std::uint64_t> manifests;       // digest -> number of dead names
    std::map<PackId, std::vector<ContentId>> blobs;  // pack -> its blobs
  };

  Status follow(const OriginCollection& latest) {
    if (latest.origin != origin_.uuid()) return {};
    needs_.follow(latest.horizon_ns);
    return origin_.know_freed(latest.sequence);
  }

  // Copies need space: the packs without a needed blob go first.
  Status free_before_copies() {
    WEFT_CHECK(announce());
    WEFT_CHECK(needs_.read_again());
    WEFT_CHECK(spare_needed());
    WEFT_CHECK(remove_files());
    dead_ = {};
    return {};
  }

  Status announce_and_move() {
    copies_ = true;
    WEFT_CHECK(rewrites_.plan(needs_.placed(), needed_.packs()));
    if (dead_.packs.empty() && dead_.manifests.empty() && rewrites_.moves().empty() && orphans().empty()) return {};
    WEFT_CHECK(announce());
    WEFT_CHECK(move());
    WEFT_CHECK(needs_.read_again());
    return spare_needed();
  }

  Status find_dead() {
    WEFT_CHECK(find_dead_manifests("manifests"));
    WEFT_CHECK(find_dead_manifests("places"));
    progress_.phase("reading tables of contents");
    WEFT_TRY(const auto packs, origin_.packs());
    const std::set<PackId> present(packs.begin(), packs.end());
    for (const PackId pack : packs) {
      WEFT_CHECK(check_cancelled(progress_));
      WEFT_CHECK(judge(pack));
    }
    // A repair that brings back a lost pack writes another one before places name it.
    if (!std::ranges::includes(whole_, needed_.packs())) unnamed_.clear();
    for (const auto& [pack, blobs] : unnamed_) report_.dead_bytes += bytes_of(blobs);
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
    std::uint64_t bytes = 0, dead_bytes = 0;
    std::vector<ContentId> blobs;
    if (const auto st = stat_file(pack_path(directory_, pack));
        st.ok() && static_cast<std::uint64_t>(st->st_size) >= toc->size)
      whole_.insert(pack);
    for (const PackEntry& entry : toc->entries) {
      blobs.push_back(entry.id);
      bytes += entry.id.length;
      if (!needed_.has_blob(entry.id)) dead_bytes += entry.id.length;
      if (options_.blobs && options_.blobs->contains(entry.id)) purged_packs_.insert(pack);
    }
    const bool needed = is_needed(pack, blobs);
    const bool read = !needed && is_read(pack);
    if (!needed && !read) return add_dead(pack, std::move(blobs)), Status{};
    ++report_.packs;
    if (needed && listed_before_.contains(pack) && !needed_.packs().contains(pack)) ++report_.packs_spared;
    if (options_.blobs && !purged_packs_.contains(pack)) return {};
    if (needed && is_orphan(pack, blobs)) return unnamed_.emplace(pack, std::move(blobs)), Status{};
    report_.dead_bytes += read ? bytes : dead_bytes;
    const bool all = options_.all || options_.blobs;
    if (needed_.packs().contains(pack) && (all ? dead_bytes > 0 : has_dead_share(bytes, dead_bytes)))
      rewrites_.add(pack, dead_bytes);
    return {};
  }

  // True if no places lead to a pack, or will: a collection that was stopped has left a copy, or two nodes have staged
  // equal blobs at once. The blobs that versions need are in other packs.
  bool is_orphan(PackId pack, const std::vector<ContentId>& blobs) const {
    return !needed_.packs().contains(pack) && !listed_before_.contains(pack) && !needed_.may_place_in(blobs);
  }

  static std::uint64_t bytes_of(const std::vector<ContentId>& blobs) {
    std::uint64_t bytes = 0;
    for (const ContentId& id : blobs) bytes += id.length;
    return bytes;
  }

  // Returns the orphans of find_dead() that the rewrites do not continue with. From this collection on a list names
  // them, as it names rewritten packs, so that no writer relies on them. A later collection frees them, after the same
  // time for readers.
  std::vector<PackId> orphans() const {
    std::vector<PackId> all;
    for (const auto& [pack, blobs] : unnamed_)
      if (copies_ && !rewrites_.is_copy(pack)) all.push_back(pack);
    return all;
  }

  // Another collection, announced before this one, may be moving places to its copy, which is no orphan then. It writes
  // them under the present name of a manifest, which has no places until then.
  Status keep_copies_of_others() {
    if (unnamed_.empty()) return {};
    const std::set<Digest> moves(rewrites_.moves().begin(), rewrites_.moves().end());
    for (const Digest& manifest : needs_.placed()) {
      if (moves.contains(manifest)) continue;  // this manifest gets a later name
      WEFT_TRY(const bool has, rewrites_.has_present_name(manifest));
      const auto places = origin_.places(manifest);
      if (!has || !places.ok()) return unnamed_.clear(), Status{};
      for (const auto& [id, place] : places->blobs) unnamed_.erase(place.pack);
    }
    return {};
  }

  // True if readers may still use a pack that was rewritten.
  bool is_read(PackId pack) const {
    const auto& all = origin_.freed().rewritten;
    const auto at = std::ranges::find(all, pack, &std::pair<PackId, std::uint64_t>::first);
    if (at == all.end()) return false;
    return options_.blobs ? !purged_packs_.contains(pack) : at->second + options_.reading_ns > now_ns_;
  }

  // A pack that a list names is needed only by versions whose places name it, and by those without places whose blobs
  // it has: their stage-outs may have begun before the announcement. All other versions have their blobs in other
  // packs, because a collection that was stopped may still delete the pack.
  bool is_needed(PackId pack, const std::vector<ContentId>& blobs) {
    if (needed_.packs().contains(pack)) return true;
    if (listed_before_.contains(pack)) return needed_.may_place_in(blobs);
    return std::ranges::any_of(blobs, [this](const ContentId& id) { return needed_.has_blob(id); });
  }

  void add_dead(PackId pack, std::vector<ContentId> blobs) {
    const auto st = stat_file(pack_path(directory_, pack));
    dead_.packs.emplace(pack, st.ok() ? allocated_bytes(*st) : 0);
    dead_.blobs.emplace(pack, std::move(blobs));
  }

  // Returns the list of this collection: the dead files, those of the last list, and those that a rewrite replaces.
  FreedFiles list(std::uint64_t sequence) const {
    const FreedFiles& last = origin_.freed();
    std::set<PackId> packs(last.packs.begin(), last.packs.end());
    std::map<PackId, std::uint64_t> rewritten(last.rewritten.begin(), last.rewritten.end());
    std::map<Digest, std::uint64_t> manifests(last.manifests.begin(), last.manifests.end());
    for (const auto& [pack, bytes] : dead_.packs) packs.insert(pack);
    for (const auto& [pack, copy] : rewrites_.packs()) {
      packs.insert(pack);
      rewritten[pack] = now_ns_;
    }
    for (const PackId pack : orphans()) {
      packs.insert(pack);
      rewritten[pack] = now_ns_;
    }
    for (const auto& [digest, names] : dead_.manifests) {
      std::uint64_t& count = manifests[digest];
      count = std::max(count, names);
    }
    for (const Digest& digest : rewrites_.moves()) ++manifests[digest];
    FreedFiles list;
    list.sequence = sequence;
    list.packs.assign(packs.begin(), packs.end());
    list.manifests.assign(manifests.begin(), manifests.end());
    list.rewritten.assign(rewritten.begin(), rewritten.end());
    return list;
  }

  Status announce() {
    for (unsigned tries = 1;; ++tries) {
      const OriginCollection latest = order_.latest();
      WEFT_CHECK(follow(latest));
      if (copies_) {
        WEFT_CHECK(rewrites_.plan(needs_.placed(), needed_.packs()));
        WEFT_CHECK(keep_copies_of_others());
      }
      FreedFiles freed = list(origin_.freed().sequence + 1);
      Status done = put_freed(directory_, freed);
      if (done.ok()) done = order_.announce({origin_.uuid(), freed.sequence, needs_.horizon_ns()});
      if (done.ok()) return origin_.know(std::move(freed)), Status{};
      WEFT_CHECK(origin_.know_freed(0));
      const bool again = done.error().code == Errc::exists || done.error().code == Errc::changed;
      if (!again || tries == kAnnounceTries) return done;
      WEFT_CHECK(check_cancelled(progress_));
    }
  }

  // Places lead to the copies from now on. Without a time for readers, the old packs go too.
  Status move() {
    for (const PackId pack : orphans()) listed_before_.insert(pack);
    WEFT_TRY(const bool moved, rewrites_.move());
    if (!moved) return report_.packs_spared += rewrites_.packs().size(), Status{};
    for (const auto& [old, copy] : rewrites_.packs()) {
      needed_.add_rewrite(old, copy);
      listed_before_.insert(old);
      ++report_.packs_rewritten;
      if (options_.reading_ns == 0) WEFT_CHECK(add_replaced(old, copy));
    }
    return {};
  }

  // Nothing if another collection has deleted the old pack already.
  Status add_replaced(PackId old, PackId copy) {
    WEFT_TRY(const auto toc, if_there(origin_.toc(old)));
    if (!toc) return leave_dead(old), Status{};
    std::vector<ContentId> blobs;
    for (const PackEntry& entry : toc->entries) blobs.push_back(entry.id);
    add_dead(old, std::move(blobs));
    std::uint64_t& bytes = dead_.packs.at(old);
    if (const auto st = stat_file(pack_path(directory_, copy)); st.ok()) bytes -= std::min(bytes, allocated_bytes(*st));
    return {};
  }

  // The bytes that were dead in a rewritten pack are gone.
  void leave_dead(PackId old) { report_.dead_bytes -= std::min(report_.dead_bytes, rewrites_.dead_bytes(old)); }

  // Takes from the dead files those that a version needs since the announcement.
  Status spare_needed() {
    std::erase_if(dead_.manifests, [this](const auto& one) { return needed_.has_manifest(one.first); });
    std::erase_if(dead_.packs, [this](const auto& one) {
      const bool needed = is_needed(one.first, dead_.blobs.at(one.first));
      if (needed && rewrites_.packs().contains(one.first)) ++report_.packs_spared;
      return needed;
    });
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
      rewrites_.packs().contains(pack) ? leave_dead(pack) : void(++report_.packs_freed);
      report_.bytes_freed += bytes;
    }
    return {};
  }

  // An old name of a manifest may have readers as long as the old packs to which its places lead.
  Status sweep_lists() {
    std::set<PackId> read;
    for (const auto& [pack, time_ns] : origin_.freed().rewritten)
      if (is_read(pack)) read.insert(pack);
    WEFT_CHECK(sweep_names(
        directory_, origin_.freed(), [this](const Digest& one) { return needed_.has_manifest(one); }, read));
    return sweep_freed(directory_, origin_.freed().sequence);
  }

  OriginDir origin_;
  SafePath directory_;
  std::uint64_t now_ns_ = 0;  // by the origin's clock
  CollectionOrder& order_;
  const OriginGcOptions& options_;
  Progress& progress_;
  OriginGcReport report_;
  VersionNeeds needs_{origin_, order_, options_, progress_};
  NeededFiles& needed_ = needs_.files();
  std::set<PackId> listed_before_;                    // packs that an earlier list names
  std::set<PackId> purged_packs_;                     // packs with a blob of the options
  std::map<PackId, std::vector<ContentId>> unnamed_;  // orphans, with their blobs
  std::set<PackId> whole_;                            // packs that are as long as their tables of contents say
  bool copies_ = false;                               // the lists of this collection name rewritten packs and orphans
  Dead dead_;
  PackRewrites rewrites_{origin_, [this](const ContentId& id) { return needed_.has_blob(id); }, progress_};
};

}  // namespace

Result<OriginGcReport> collect_origin(OriginDir origin, CollectionOrder& order, const OriginGcOptions& options,
                                      Progress& progress) {
  return OriginCollecting(std::move(origin), order, options, progress).run();
}

}  // namespace weft
