#include "packs/collect.h"

#include <fcntl.h>

#include <algorithm>
#include <optional>

#include <fmt/core.h>

#include "base/log.h"
#include "diskformat/pack_names.h"
#include "diskformat/toc.h"
#include "os/file_lock.h"
#include "os/file_ops.h"
#include "os/sys.h"
#include "packs/pack_writer.h"
#include "packs/temp_area.h"

namespace weft {
namespace {

constexpr std::uint64_t kDeadShare = 5;           // a pack with more than 1 / 5 dead is rewritten on every file system
constexpr std::uint64_t kTinyLive = 512U << 10U;  // packs with less
constexpr std::size_t kTinyPacksMin = 16;         // are merged when there are so many,
constexpr std::size_t kTinyGroup = 256;           // so many into one
constexpr std::size_t kDeletedAtOnce = 256;       // packs whose rows go in one commit

// A pack that has live blobs.
struct Kept {
  PackId id = 0;
  std::uint64_t listed = 0, live = 0;  // bytes
  std::uint64_t dead_blobs = 0;
  std::uint64_t dead() const { return listed - live; }
};

void add_to(RewriteGroup& group, const Kept& pack) {
  group.packs.push_back(pack.id);
  group.live_bytes += pack.live;
  group.dead_blobs += pack.dead_blobs;
  group.dead_bytes += pack.dead();
}

class Collector {
 public:
  explicit Collector(const CollectContext& context) : context_(context) {}

  Status clear_temporaries();
  Status look(PackId pack);
  Status delete_dead();
  Status clear_orphans();
  std::vector<RewriteGroup> plan();

 private:
  bool dry_run() const { return context_.input.options.dry_run; }
  Result<JudgedPack> judge(const PackToc& toc);
  bool lost_some(PackId pack) const;
  bool is_busy(const PackToc& toc);
  Status delete_some(std::span<const PackId> packs);
  Result<bool> erase_if_dead(BlobWriter& index, PackId pack);
  void keep(const PackToc& toc, const JudgedPack& judged);
  bool is_worth_rewriting(const Kept& pack);
  bool shares_blocks();
  void count_freed(const JudgedPack& judged);

  const CollectContext& context_;
  std::vector<PackId> dead_;
  std::vector<Kept> kept_;
  std::optional<bool> shares_blocks_;
};

Status Collector::clear_temporaries() {
  const SafePath tmp = context_.packs.store_path() / "tmp";
  auto names = list_directory(tmp);
  if (!names.ok()) return names.error().code == Errc::not_found ? Status{} : Status{names.error()};
  for (const std::string& name : *names) {
    auto removed = remove_if_stale(tmp / name, dry_run());
    if (!removed.ok()) log_warning("gc: {}", removed.error().message);
    if (removed.ok() && *removed) ++context_.report.stale_temporaries;
  }
  return {};
}

Result<JudgedPack> Collector::judge(const PackToc& toc) {
  WEFT_TRY(std::unique_ptr<BlobIndex> index, context_.index.read());
  return judge_pack(*index, context_.unreaped, toc);
}

// A rebuild did not find all that the pack had listed. What is not listed any more may be what versions miss.
bool Collector::lost_some(PackId pack) const {
  return stat_file(context_.packs.toc_file(pack) + ".lost").ok();
}

// Left for the next gc.
bool Collector::is_busy(const PackToc& toc) {
  const auto& relied_on = context_.input.is_relied_on;
  const bool busy = (relied_on && relied_on(toc)) || is_being_filled(context_.packs, toc.pack);
  if (busy) ++context_.report.busy_packs;
  return busy;
}

// Without the writer lock: what is done about the pack is decided again with it.
Status Collector::look(PackId pack) {
  auto toc = context_.packs.toc(pack);
  if (!toc.ok()) {
    log_warning("gc: {}", toc.error().message);  // fsck's business; nothing is removed for want of a .toc
    return {};
  }
  WEFT_TRY(JudgedPack judged, judge(*toc));
  if (judged.lost_rows)
    log_warning("gc: pack {}: the index counts more blobs than it has rows; run `weft fsck --rebuild`",
                pack_name(pack));
  if (!judged.all_live() && (judged.lost_rows || lost_some(pack) || is_busy(*toc))) {
    context_.report.dead_bytes += total_bytes(toc->entries) - total_bytes(judged.live);
    return {};
  }
  if (!judged.live.empty()) {
    keep(*toc, judged);
    return {};
  }
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

// A cached pack with live blobs is never rewritten, since the new pack would be this node's own: eviction deletes it.
void Collector::keep(const PackToc& toc, const JudgedPack& judged) {
  const Kept pack{toc.pack, total_bytes(toc.entries), total_bytes(judged.live),
                  judged.unheld.size() + judged.unlisted.size()};
  context_.report.dead_bytes += pack.dead();
  if (!toc.cached) kept_.push_back(pack);
}

Status Collector::delete_dead() {
  for (std::size_t i = 0; i < dead_.size(); i += kDeletedAtOnce)
    WEFT_CHECK(delete_some(std::span(dead_).subspan(i, std::min(kDeletedAtOnce, dead_.size() - i))));
  return {};
}

// The rows go first: a reader that does not find the file of a row looks at the index again.
Status Collector::delete_some(std::span<const PackId> packs) {
  WEFT_TRY(std::unique_ptr<BlobWriter> index, context_.index.write());
  WEFT_CHECK(context_.unreaped.look(*index));
  std::vector<PackId> erased;
  for (const PackId pack : packs) {
    WEFT_TRY(const bool dead, erase_if_dead(*index, pack));
    if (dead) erased.push_back(pack);
  }
  WEFT_CHECK(index->commit());
  for (const PackId pack : erased) {
    auto st = stat_file(context_.packs.pack_file(pack));
    WEFT_CHECK(remove_pack(context_.packs, pack));
    ++context_.report.packs_deleted;
    if (st.ok()) context_.report.disk_bytes_freed += allocated_bytes(*st);
  }
  return {};
}

Result<bool> Collector::erase_if_dead(BlobWriter& index, PackId pack) {
  auto toc = context_.packs.toc(pack);  // again: a fetch may have added to it
  if (!toc.ok()) return false;
  WEFT_TRY(const JudgedPack judged, judge_pack(index, context_.unreaped, *toc));
  if (!judged.live.empty() || judged.lost_rows || is_busy(*toc)) return false;
  for (const PackEntry& entry : judged.unheld) WEFT_CHECK(index.erase(entry.id, entry.hint));
  count_freed(judged);
  return true;
}

void Collector::count_freed(const JudgedPack& judged) {
  context_.report.blobs_freed += judged.unheld.size() + judged.unlisted.size();
  context_.report.bytes_freed += total_bytes(judged.unheld) + total_bytes(judged.unlisted);
}

// Do two files of this store share blocks after a copy? Then a rewritten pack takes no space for what it shares.
bool Collector::shares_blocks() {
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

bool Collector::is_worth_rewriting(const Kept& pack) {
  if (pack.dead() == 0) return false;
  return context_.input.options.all || pack.dead() > pack.listed / kDeadShare || shares_blocks();
}

std::vector<RewriteGroup> Collector::plan() {
  std::vector<RewriteGroup> groups;
  std::vector<Kept> tiny;
  for (const Kept& pack : kept_)
    if (pack.live < kTinyLive) tiny.push_back(pack);
  const bool merges = tiny.size() >= kTinyPacksMin;
  for (const Kept& pack : kept_)
    if (!(merges && pack.live < kTinyLive) && is_worth_rewriting(pack)) add_to(groups.emplace_back(), pack);
  for (std::size_t i = 0; merges && i < tiny.size(); ++i) {
    if (i % kTinyGroup == 0) groups.emplace_back();
    add_to(groups.back(), tiny[i]);
  }
  return groups;
}

// Under the writer lock, which every process that places a pack holds: a file without its other half is litter then,
// and so is what is left of a table of contents that was being replaced.
Status Collector::clear_orphans() {
  WEFT_TRY(const std::unique_ptr<BlobWriter> lock, context_.index.write());
  WEFT_TRY(std::vector<std::string> names, list_directory(context_.packs.path()));
  for (const std::string& name : names) {
    auto pack = pack_of_name(name, ".toc");
    const bool whole = pack && std::binary_search(names.begin(), names.end(), pack_name(*pack) + ".pack");
    if (whole || (!pack && !pack_of_name(name, ".toc.new"))) continue;
    ++context_.report.stale_temporaries;
    if (!dry_run()) WEFT_CHECK(remove_file(context_.packs.path() / name));
  }
  return {};
}

}  // namespace

// A version whose manifest is lost cannot be read, so nothing is kept for it.
Status UnreapedContent::look(BlobIndex& index) {
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
  for (const PackEntry& entry : toc.entries) {
    WEFT_TRY(std::optional<BlobPlace> place, index.find(entry.id));
    if (!place) {
      judged.unlisted.push_back(entry);
    } else if (place->pack != toc.pack || place->offset != entry.offset) {
      ++judged.moved;
    } else {
      WEFT_TRY(const bool held, index.is_held(entry.id));
      (held || unreaped.has(entry.id) ? judged.live : judged.unheld).push_back(entry);
    }
  }
  WEFT_TRY(const std::uint64_t counted, index.in_pack(toc.pack));
  judged.lost_rows = counted > judged.live.size() + judged.unheld.size();
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

Status remove_pack(const Packs& packs, PackId pack) {
  WEFT_CHECK(remove_file(packs.pack_file(pack)));
  return remove_file(packs.toc_file(pack));
}

Status collect_packs(Packs& packs, IndexAccess& index, const CollectInput& input, Progress& progress,
                     GcReport& report) {
  progress.phase("collecting packs");
  report.dead_bytes = report.packs_waiting = report.bytes_wanted = 0;
  UnreapedContent unreaped(input.content_of);
  const CollectContext context{packs, index, input, progress, report, unreaped};
  {
    WEFT_TRY(const std::unique_ptr<BlobIndex> now, index.read());
    WEFT_CHECK(unreaped.look(*now));
  }
  Collector collector(context);
  WEFT_CHECK(collector.clear_temporaries());
  WEFT_TRY(std::vector<PackId> all, packs.list());
  for (PackId pack : all) {
    if (progress.cancelled()) return Error{Errc::cancelled, fmt::format("{}: gc stopped", packs.store_path())};
    WEFT_CHECK(collector.look(pack));
  }
  WEFT_CHECK(collector.delete_dead());
  WEFT_CHECK(collector.clear_orphans());
  return rewrite_packs(context, collector.plan());
}

}  // namespace weft
