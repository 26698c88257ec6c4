#include "packs/collect.h"

#include <fcntl.h>

#include <algorithm>
#include <map>
#include <optional>

#include <fmt/core.h>

#include "base/limits.h"
#include "base/log.h"
#include "diskformat/dead_share.h"
#include "diskformat/pack_names.h"
#include "os/file_lock.h"
#include "os/file_ops.h"
#include "os/sys.h"
#include "packs/manifest_packs.h"
#include "packs/pack_writer.h"
#include "packs/temp_area.h"
#include "weft/store/snapshot.h"

namespace weft {
namespace {

// If there are this many small packs of one kind, they are merged. A merged pack counts as small below kMergedMax. The
// pack of one whole file has at least kWholeFileMin live bytes, so it is not merged and is still read as that file.
constexpr std::size_t kSmallPacksMin = 16;
constexpr std::size_t kSmallGroup = 256;  // at most this many packs into one
constexpr std::uint64_t kSmallLive = 512U << 10U;
constexpr std::uint64_t kMergedMax = 16U << 20U;

// A pack that has live blobs.
struct Kept {
  PackId id = 0;
  std::uint64_t listed = 0, live = 0;  // bytes
  std::uint64_t dead_blobs = 0;
  bool merged = false;  // by gc, or a pack of manifests
  bool cached = false;  // evicted by itself, so it is not merged
  bool is_small() const { return !cached && live < (merged ? kMergedMax : kSmallLive); }
  std::uint64_t dead() const { return listed - live; }
};

Result<bool> is_there(const SafePath& file) {
  const auto st = stat_file(file);
  if (st.ok() || st.error().code == Errc::not_found) return st.ok();
  return st.error();
}

void add_to(RewriteGroup& group, const Kept& pack) {
  group.packs.push_back(pack.id);
  group.cached = pack.cached;
  group.live_bytes += pack.live;
  group.dead_blobs += pack.dead_blobs;
  group.dead_bytes += pack.dead();
}

// Returns how many of the small packs, sorted by size, to merge. After the first kSmallPacksMin, a pack is merged if it
// is no larger than all smaller ones together. So few packs remain, and a blob is copied only when its pack doubles.
std::size_t count_to_merge(std::span<const Kept> small) {
  std::size_t count = 0;
  for (std::uint64_t live = 0; count < small.size(); ++count) {
    if (count >= kSmallPacksMin && small[count].live > live) break;
    live += small[count].live;
  }
  return count;
}

Status judge_entries(BlobIndex& index, const UnreapedContent& unreaped, const PackToc& toc,
                     std::span<const PackEntry> entries, JudgedPack& judged) {
  const bool manifests = kind_of_pack(toc.pack) == PackKind::manifests;
  for (const PackEntry& entry : entries) {
    WEFT_TRY(std::optional<BlobPlace> place,
             manifests ? index.find_manifest(manifest_digest(entry)) : index.find(entry.id));
    if (!place) {
      judged.unlisted.push_back(entry);
    } else if (place->pack != toc.pack || place->offset != entry.offset) {
      ++judged.moved;
    } else {
      WEFT_TRY(const bool held, manifests ? Result<bool>(true) : index.is_held(entry.id));
      const bool open = !held && unreaped.has(entry.id);
      if (open) ++judged.open;
      (held || open ? judged.live : judged.unheld).push_back(entry);
    }
  }
  return {};
}

class Collector {
 public:
  explicit Collector(const CollectContext& context) : context_(context) {}

  // Judges the packs that the index has queued or, on a walk, all packs.
  Status judge_all() {
    WEFT_TRY(queued_, noted(&BlobIndex::queued));
    WEFT_TRY(left_dead_, noted(&BlobIndex::left_dead));
    std::set<PackId> packs(context_.input.also.begin(), context_.input.also.end());
    for (const auto& [pack, when] : queued_) packs.insert(pack);
    if (context_.input.walk) {
      WEFT_TRY(const std::vector<PackId> all, context_.packs.list());
      packs.insert(all.begin(), all.end());
      for (const auto& [pack, bytes] : left_dead_) packs.insert(pack);
    }
    for (const auto& [pack, bytes] : left_dead_)
      if (!packs.contains(pack)) context_.report.dead_bytes += bytes;
    for (const PackId pack : packs) {
      if (context_.progress.cancelled())
        return Error{Errc::cancelled, fmt::format("{}: gc stopped", context_.packs.store_path())};
      WEFT_CHECK(judge(pack));
    }
    return {};
  }

  Status delete_dead() {
    for (std::span<const PackId> rest(dead_); !rest.empty();) {
      WEFT_TRY(const bool dead, erase_all_but_last(rest.front()));
      std::size_t done = 1;
      if (dead) {
        WEFT_TRY(done, delete_some(rest));
      }
      rest = rest.subspan(done);
    }
    return {};
  }

  // Checks again under the writer lock. Every process that places a pack holds that lock, so a lone file is litter
  // then.
  Status clear_orphans() {
    WEFT_TRY(const std::vector<std::string> names, list_directory(context_.packs.path()));
    WEFT_TRY(const std::vector<std::string> likely, orphans(names));
    for (std::size_t at = 0; at < likely.size(); at += limits::kBatchItems) {
      WEFT_TRY(const std::unique_ptr<BlobWriter> lock, context_.index.write());
      WEFT_TRY(const auto litter,
               orphans(std::span(likely).subspan(at, std::min(limits::kBatchItems, likely.size() - at))));
      context_.report.stale_temporaries += litter.size();
      if (dry_run()) continue;
      for (const std::string& name : litter) WEFT_CHECK(remove_file(context_.packs.path() / name));
    }
    return {};
  }

  std::vector<RewriteGroup> plan() {
    std::vector<RewriteGroup> groups;
    plan_kind(PackKind::blobs, groups);
    plan_kind(PackKind::manifests, groups);
    for (const RewriteGroup& group : groups)
      for (const PackId pack : group.packs) judged_[pack].again = true;  // unless it is rewritten
    return groups;
  }

  Status note_packs() {
    if (dry_run()) return {};
    std::vector<PackVerdict> verdicts;
    for (const auto& [pack, verdict] : judged_) {
      WEFT_TRY(const std::optional<PackVerdict> found, verdict_of(pack));
      if (found) verdicts.push_back(*found);
    }
    for (std::span<const PackVerdict> rest(verdicts); !rest.empty();) {
      const auto some = rest.first(std::min(limits::kBatchRows, rest.size()));
      rest = rest.subspan(some.size());
      WEFT_TRY(const std::unique_ptr<BlobWriter> index, context_.index.write());
      for (const PackVerdict& one : some) WEFT_CHECK(index->note(one));
      WEFT_CHECK(index->commit());
    }
    return {};
  }

 private:
  using Numbers = std::map<PackId, std::uint64_t>;
  using ReadNotes = Result<std::vector<NotedPack>> (BlobIndex::*)(PackId from, std::size_t count_max);
  // The note that note_packs() writes for a pack that still exists.
  struct Verdict {
    bool again = false;
    std::uint64_t dead_bytes = 0;
  };

  Result<Numbers> noted(ReadNotes read) {
    Numbers numbers;
    for (PackId from = 0;;) {
      WEFT_TRY(const std::unique_ptr<BlobIndex> now, context_.index.read());
      WEFT_TRY(const std::vector<NotedPack> some, (now.get()->*read)(from, limits::kRowsPerSnapshot));
      for (const NotedPack& noted : some) numbers[noted.pack] = noted.value;
      if (some.size() < limits::kRowsPerSnapshot) return numbers;
      from = some.back().pack + 1;
    }
  }

  // Looks at a pack without the writer lock. Each decision is checked again under the lock.
  Status judge(PackId pack) {
    auto toc = context_.packs.toc(pack);
    if (!toc.ok()) {
      leave(pack, true, 0);  // note_packs() finds out whether the pack is gone
      WEFT_TRY(const bool there, is_there(context_.packs.pack_file(pack)));
      if (there) log_warning("gc: {}", toc.error().message);  // fsck repairs it; without its .toc nothing is removed
      return {};
    }
    WEFT_TRY(const JudgedPack judged, judge_pack(context_.index, context_.unreaped, *toc));
    if (judged.lost_rows)
      log_warning("gc: pack {}: the index counts more blobs than it has rows; run `weft fsck --rebuild`",
                  pack_name(pack));
    if (!judged.all_live() && (judged.lost_rows || lost_some(pack) || is_busy(context_, *toc))) {
      leave(pack, true, total_bytes(toc->entries) - total_bytes(judged.live));
      return {};
    }
    if (!judged.live.empty()) {
      keep(*toc, judged);
      return {};
    }
    leave(pack, true, 0);  // unless it is deleted
    if (!dry_run()) {
      dead_.push_back(pack);
      return {};
    }
    auto st = stat_file(context_.packs.pack_file(pack));
    if (!st.ok()) return {};
    count_freed(judged);
    ++context_.report.packs_deleted;
    context_.report.disk_bytes_freed += allocated_bytes(*st);
    return {};
  }

  void leave(PackId pack, bool again, std::uint64_t dead_bytes) {
    judged_[pack] = {again, dead_bytes};
    context_.report.dead_bytes += dead_bytes;
  }

  // Returns the note to write for a pack. Nothing if the index has it already.
  Result<std::optional<PackVerdict>> verdict_of(PackId pack) const {
    const Verdict& verdict = judged_.at(pack);
    WEFT_TRY(const bool there, is_there(context_.packs.pack_file(pack)));
    WEFT_TRY(const bool listed, is_there(context_.packs.toc_file(pack)));
    PackVerdict found{pack, {}, there && verdict.again, there ? verdict.dead_bytes : 0, !there && !listed};
    const auto queued = queued_.find(pack);
    const auto dead = left_dead_.find(pack);
    if (queued != queued_.end()) found.queued = queued->second;
    if (!there && listed) found.again = true;
    const bool known =
        found.again == found.queued.has_value() && found.dead_bytes == (dead == left_dead_.end() ? 0 : dead->second);
    return known ? std::nullopt : std::optional(found);
  }

  void plan_kind(PackKind kind, std::vector<RewriteGroup>& groups) {
    std::vector<Kept> small;
    std::vector<Kept> others;
    for (const Kept& pack : kept_)
      if (kind_of_pack(pack.id) == kind) (pack.is_small() ? small : others).push_back(pack);
    std::ranges::sort(small, {}, &Kept::live);
    const std::size_t merged = small.size() >= kSmallPacksMin ? count_to_merge(small) : 0;
    for (std::size_t i = 0; i < merged; ++i) {
      if (i % kSmallGroup == 0) groups.emplace_back();
      add_to(groups.back(), small[i]);
    }
    others.insert(others.end(), small.begin() + static_cast<std::ptrdiff_t>(merged), small.end());
    for (const Kept& pack : others)
      if (is_worth_rewriting(pack)) add_to(groups.emplace_back(), pack);
  }

  bool dry_run() const { return context_.input.options.dry_run; }

  // True if a rebuild left PACK.toc.lost: unlisted bytes of the pack may be blobs that versions miss.
  bool lost_some(PackId pack) const { return stat_file(context_.packs.toc_file(pack) + ".lost").ok(); }

  // Deletes a batch of packs, at least the first, and returns how many packs it has judged. Rows go before files: a
  // reader that does not find the file reads the index again.
  Result<std::size_t> delete_some(std::span<const PackId> packs) {
    WEFT_TRY(std::unique_ptr<BlobWriter> index, context_.index.write());
    WEFT_CHECK(context_.unreaped.refresh(*index));
    std::vector<PackId> erased;
    std::size_t done = 0;
    for (std::size_t rows = 0; done < std::min(packs.size(), limits::kBatchItems); ++done) {
      auto toc = context_.packs.toc(packs[done]);  // read again: a fetch may have added blobs
      if (!toc.ok()) continue;
      rows += toc->entries.size();
      if (done > 0 && rows > limits::kBatchRows) break;
      WEFT_TRY(const bool dead, erase_if_dead(*index, *toc));
      if (dead) erased.push_back(packs[done]);
    }
    WEFT_CHECK(index->commit());
    for (const PackId pack : erased) {
      auto st = stat_file(context_.packs.pack_file(pack));
      WEFT_CHECK(remove_pack(context_.packs, pack));
      ++context_.report.packs_deleted;
      log_debug(LogCategory::gc, "pack {} deleted: no blob of it is needed", pack_name(pack));
      if (st.ok()) context_.report.disk_bytes_freed += allocated_bytes(*st);
    }
    return done;
  }

  // Erases the rows of a pack with many blobs in batches, all but the last batch, which goes together with the pack.
  // False if the pack cannot be deleted, for example because a blob is needed again. Rows erased until then stay
  // erased: no version needed them.
  Result<bool> erase_all_but_last(PackId pack) {
    auto toc = context_.packs.toc(pack);
    if (!toc.ok()) return false;
    for (std::span<const PackEntry> rest(toc->entries); rest.size() > limits::kBatchRows;) {
      const auto batch = rest.first(limits::kBatchRows);
      rest = rest.subspan(batch.size());
      WEFT_TRY(const std::unique_ptr<BlobWriter> index, context_.index.write());
      WEFT_CHECK(context_.unreaped.refresh(*index));
      JudgedPack judged;
      WEFT_CHECK(judge_entries(*index, context_.unreaped, *toc, batch, judged));
      if (!judged.live.empty() || is_busy(context_, *toc)) return false;
      for (const PackEntry& entry : judged.unheld) WEFT_CHECK(index->erase(entry.id, entry.hint));
      WEFT_CHECK(index->commit());
    }
    return true;
  }

  // Returns the litter among these names of packs/: each .toc without a .pack or .copy, and each .toc.new of an
  // interrupted replacement.
  Result<std::vector<std::string>> orphans(std::span<const std::string> names) {
    std::vector<std::string> orphans;
    for (const std::string& name : names) {
      const auto pack = pack_of_name(name, ".toc");
      if (!pack && !pack_of_name(name, ".toc.new")) continue;
      WEFT_TRY(const bool there, is_there(context_.packs.path() / name));
      WEFT_TRY(const bool whole, pack ? is_there(context_.packs.pack_file(*pack)) : Result<bool>(false));
      WEFT_TRY(const bool copied, pack ? is_there(context_.packs.copy_file(*pack)) : Result<bool>(false));
      if (there && !whole && !copied) orphans.push_back(name);
    }
    return orphans;
  }

  Result<bool> erase_if_dead(BlobWriter& index, const PackToc& toc) {
    WEFT_TRY(const JudgedPack judged, judge_pack(index, context_.unreaped, toc));
    if (!judged.live.empty() || judged.lost_rows || is_busy(context_, toc)) return false;
    for (const PackEntry& entry : judged.unheld) WEFT_CHECK(index.erase(entry.id, entry.hint));
    count_freed(judged);
    return true;
  }

  // An unsynced pack is not rewritten (unsynced.h).
  void keep(const PackToc& toc, const JudgedPack& judged) {
    log_debug(LogCategory::gc, "pack {} stays: {} of {} blobs are needed", pack_name(toc.pack), judged.live.size(),
              toc.entries.size());
    const Kept pack{toc.pack,
                    total_bytes(toc.entries),
                    total_bytes(judged.live),
                    judged.unheld.size() + judged.unlisted.size(),
                    toc.merged || kind_of_pack(toc.pack) == PackKind::manifests,
                    toc.cached};
    if (toc.boot.empty()) kept_.push_back(pack);
    leave(toc.pack, judged.open != 0 || pack.is_small(), pack.dead());
  }

  bool is_worth_rewriting(const Kept& pack) {
    if (pack.dead() == 0) return false;
    return context_.input.options.all || has_dead_share(pack.listed, pack.dead()) || shares_blocks();
  }

  // True if copies within this store share blocks. Then a rewritten pack takes no space for its shared blocks.
  bool shares_blocks() {
    const auto probe = [this]() -> Result<bool> {
      WEFT_TRY(const auto temp, TempArea::make(context_.packs.store_path()));
      WEFT_TRY(const Fd from, open_file(temp->path() / "from", O_RDWR | O_CREAT | O_EXCL));
      WEFT_TRY(const Fd to, open_file(temp->path() / "to", O_RDWR | O_CREAT | O_EXCL));
      WEFT_CHECK(write_exact(from.get(), 0, std::vector<std::byte>(kPackBlock), temp->path()));
      return clone_file(from.get(), to.get());
    };
    if (!shares_blocks_) {
      const auto shares = probe();
      shares_blocks_ = shares.ok() && *shares;
    }
    return *shares_blocks_;
  }

  void count_freed(const JudgedPack& judged) {
    context_.report.blobs_freed += judged.unheld.size() + judged.unlisted.size();
    context_.report.bytes_freed += total_bytes(judged.unheld) + total_bytes(judged.unlisted);
  }

  const CollectContext& context_;
  std::vector<PackId> dead_;
  std::vector<Kept> kept_;
  Numbers queued_, left_dead_;  // as noted before this gc
  std::map<PackId, Verdict> judged_;
  std::optional<bool> shares_blocks_;
};

}  // namespace

Result<std::uint64_t> clear_temporaries(const SafePath& tmp, bool dry_run) {
  std::uint64_t count = 0;
  WEFT_TRY(auto names, if_there(list_directory(tmp)));
  if (!names) return count;
  for (const std::string& name : *names) {
    auto removed = remove_if_stale(tmp / name, dry_run);
    if (!removed.ok()) log_warning("gc: {}", removed.error().message);
    if (removed.ok() && *removed) ++count;
  }
  return count;
}

// A version whose manifest is lost cannot be read, so none of its blobs are kept.
Status UnreapedContent::refresh(BlobIndex& index) {
  WEFT_TRY(const std::vector<VersionId> versions, index.unreaped());
  for (const VersionId version : versions) {
    if (known_.contains(version)) continue;
    if (content_of_) {
      auto content = content_of_(version);
      const bool lost =
          !content.ok() && (content.error().code == Errc::not_found || content.error().code == Errc::corrupt);
      if (!content.ok() && !lost) return std::move(content).error();
      if (content.ok()) ids_.insert(content->begin(), content->end());
    }
    known_.insert(version);
  }
  return {};
}

Result<JudgedPack> judge_pack(BlobIndex& index, const UnreapedContent& unreaped, const PackToc& toc) {
  JudgedPack judged;
  WEFT_CHECK(judge_entries(index, unreaped, toc, toc.entries, judged));
  WEFT_TRY(const std::uint64_t counted, index.in_pack(toc.pack));
  judged.lost_rows = counted > judged.indexed();
  return judged;
}

// The smallest count of all states is used, so that rows that others add or erase meanwhile do not count as lost.
Result<JudgedPack> judge_pack(IndexAccess& index, const UnreapedContent& unreaped, const PackToc& toc) {
  JudgedPack judged;
  std::uint64_t counted_least = UINT64_MAX;
  for (std::span<const PackEntry> rest(toc.entries); !rest.empty();) {
    const auto some = rest.first(std::min(limits::kRowsPerSnapshot, rest.size()));
    WEFT_TRY(const std::unique_ptr<BlobIndex> now, index.read());
    WEFT_CHECK(judge_entries(*now, unreaped, toc, some, judged));
    WEFT_TRY(const std::uint64_t counted, now->in_pack(toc.pack));
    counted_least = std::min(counted_least, counted);
    rest = rest.subspan(some.size());
  }
  judged.lost_rows = !toc.entries.empty() && counted_least > judged.indexed();
  return judged;
}

std::uint64_t total_bytes(const std::vector<PackEntry>& entries) {
  std::uint64_t total = 0;
  for (const PackEntry& entry : entries) total += entry.id.length;
  return total;
}

bool is_being_filled(const Packs& packs, PackId pack) {
  const SafePath path = packs.pack_file(pack);
  const auto fd = open_file(path, O_RDONLY);
  if (!fd.ok()) return fd.error().code != Errc::not_found;
  const auto filled = excluded(fd->get(), LockKind::shared, {}, path);
  return !filled.ok() || *filled;
}

Status remove_pack(const PackDir& packs, PackId pack) {
  if (kind_of_pack(pack) == PackKind::manifests) WEFT_CHECK(remove_file(packs.copy_file(pack)));
  WEFT_CHECK(remove_file(packs.pack_file(pack)));
  return remove_file(packs.toc_file(pack));
}

bool is_busy(const CollectContext& context, const PackToc& toc) {
  const auto& relied_on = context.input.is_relied_on;
  const bool busy = (relied_on && relied_on(toc)) || is_being_filled(context.packs, toc.pack);
  if (busy) ++context.report.busy_packs;
  return busy;
}

Status collect_packs(Packs& packs, IndexAccess& index, const CollectInput& input, Progress& progress,
                     GcReport& report) {
  progress.phase("collecting packs");
  report.dead_bytes = report.packs_waiting = report.bytes_wanted = 0;
  UnreapedContent unreaped(input.content_of);
  const CollectContext context{packs, index, input, progress, report, unreaped};
  {
    WEFT_TRY(const std::unique_ptr<BlobIndex> now, index.read());
    WEFT_CHECK(unreaped.refresh(*now));
  }
  WEFT_TRY(const std::uint64_t temporaries, clear_temporaries(packs.store_path() / "tmp", input.options.dry_run));
  report.stale_temporaries += temporaries;
  Collector collector(context);
  WEFT_CHECK(collector.judge_all());
  WEFT_CHECK(collector.delete_dead());
  if (input.walk) WEFT_CHECK(collector.clear_orphans());
  std::vector<RewriteGroup> groups = collector.plan();
  WEFT_CHECK(rewrite_packs(context, std::move(groups)));
  return collector.note_packs();
}

}  // namespace weft
