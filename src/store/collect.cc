#include "store/collect.h"

#include <fcntl.h>

#include <algorithm>

#include <fmt/core.h>

#include "base/log.h"
#include "store/file_ops.h"
#include "store/pack_file.h"
#include "store/temp_area.h"
#include "store/toc.h"

namespace weft {
namespace {

constexpr std::uint64_t kSlack = 64U << 10U;      // waste that is not worth work, and
constexpr std::uint64_t kSlackShare = 100;        // 1 / 100 of what is needed
constexpr std::uint64_t kTinyLive = 512U << 10U;  // packs with less
constexpr std::size_t kTinyPacksMin = 16;         // are merged when there are so many

class Collector {
 public:
  Collector(Packs& packs, IndexAccess& index, const GcOptions& options, GcReport& report)
      : packs_(packs),
        index_(index),
        dry_run_(options.dry_run),
        clustered_(options.registry_revision != 0),
        report_(report) {}

  Status clear_temporaries();
  Status sweep(PackId pack);
  Status clear_orphans();
  CompactionPlan take_plan();

 private:
  Result<JudgedPack> judge(const PackToc& toc);
  Status sweep_locked(const PackToc& toc);
  Result<JudgedPack> erase_rows(const PackToc& toc);
  Status shrink(int fd, const PackToc& toc, const JudgedPack& judged);
  Status remove_pack(PackId pack);
  void foresee(const JudgedPack& judged, std::uint64_t allocated);
  void count_freed(const JudgedPack& judged);
  void plan_compaction(const PackToc& toc, const JudgedPack& judged);
  Result<bool> is_being_made(PackId pack);

  Packs& packs_;
  IndexAccess& index_;
  bool dry_run_;
  bool clustered_;
  GcReport& report_;
  CompactionPlan plan_;
};

Status Collector::clear_temporaries() {
  const std::string tmp = packs_.store_path() + "/tmp";
  auto names = list_directory(tmp);
  if (!names.ok()) return names.error().code == Errc::not_found ? Status{} : Status{names.error()};
  for (const std::string& name : *names) {
    auto removed = remove_if_stale(fmt::format("{}/{}", tmp, name), dry_run_);
    if (!removed.ok()) log_warning("gc: {}", removed.error().message);
    if (removed.ok() && *removed) ++report_.stale_temporaries;
  }
  return {};
}

Result<JudgedPack> Collector::judge(const PackToc& toc) {
  WEFT_TRY(std::unique_ptr<BlobIndex> index, index_.read());
  return judge_pack(*index, toc);
}

// A look without locks first: most packs need nothing.
Status Collector::sweep(PackId pack) {
  auto toc = packs_.toc(pack);
  if (!toc.ok()) {
    log_warning("gc: {}", toc.error().message);  // fsck's business; nothing is removed for want of a .toc
    return {};
  }
  auto st = stat_file(pack_path(packs_.store_path(), pack));
  if (!st.ok()) return {};
  WEFT_TRY(JudgedPack judged, judge(*toc));
  if (clustered_ && !judged.unlisted.empty() && is_young(toc_path(packs_.store_path(), pack))) return {};
  if (judged.all_live() && !is_wasteful(allocated_bytes(*st), pinned_bytes(judged.live))) {
    plan_compaction(*toc, judged);
    return {};
  }
  if (dry_run_) {
    foresee(judged, allocated_bytes(*st));
    return {};
  }
  return sweep_locked(*toc);
}

Status Collector::sweep_locked(const PackToc& toc) {
  auto fd = open_exclusive(pack_path(packs_.store_path(), toc.pack));
  if (!fd.ok()) {
    if (fd.error().code == Errc::not_found) return {};
    if (fd.error().code != Errc::busy) return fd.error();
    ++report_.busy_packs;
    return {};
  }
  WEFT_TRY(JudgedPack judged, erase_rows(toc));
  WEFT_TRY(struct stat before, stat_fd(fd->get(), pack_path(packs_.store_path(), toc.pack)));
  std::uint64_t left = 0;
  if (judged.live.empty()) {
    WEFT_CHECK(remove_pack(toc.pack));
    ++report_.packs_deleted;
  } else {
    WEFT_CHECK(shrink(fd->get(), toc, judged));
    WEFT_TRY(struct stat after, stat_fd(fd->get(), "pack"));
    left = allocated_bytes(after);
    ++report_.packs_punched;
    plan_compaction(toc, judged);
  }
  count_freed(judged);
  report_.disk_bytes_freed += allocated_bytes(before) - std::min(left, allocated_bytes(before));
  return {};
}

// The rows go before the bytes: what the index knows is always there. What a reader's state of the index does not know
// may be in the journal, of a publisher that died just now: only a writer's state knows it all.
Result<JudgedPack> Collector::erase_rows(const PackToc& toc) {
  WEFT_TRY(JudgedPack judged, judge(toc));
  if (judged.unheld.empty() && judged.unlisted.empty()) return judged;
  WEFT_TRY(std::unique_ptr<BlobWriter> writer, index_.write());
  WEFT_TRY(judged, judge_pack(*writer, toc));
  if (judged.unheld.empty()) return judged;
  for (const PackEntry& entry : judged.unheld) WEFT_CHECK(writer->erase(entry.id, entry.hint));
  WEFT_CHECK(writer->commit());
  return judged;
}

// Everything that no live blob covers goes. Bytes that equalled a file without being listed go too: the file that they
// belonged to has lost blobs here, so nobody needs it whole.
Status Collector::shrink(int fd, const PackToc& toc, const JudgedPack& judged) {
  const std::string where = pack_path(packs_.store_path(), toc.pack);
  if (!judged.all_live()) {
    PackToc left = toc;
    left.entries = judged.live;
    WEFT_CHECK(replace_toc(toc_path(packs_.store_path(), toc.pack), left));
    WEFT_CHECK(sync_directory(packs_.store_path() + "/packs"));
  }
  return punch_free_blocks(fd, judged.live, toc.size, where);
}

// The .pack first: a .toc alone is litter, a .pack alone would be damage.
Status Collector::remove_pack(PackId pack) {
  WEFT_CHECK(remove_file(pack_path(packs_.store_path(), pack)));
  return remove_file(toc_path(packs_.store_path(), pack));
}

void Collector::foresee(const JudgedPack& judged, std::uint64_t allocated) {
  count_freed(judged);
  ++(judged.live.empty() ? report_.packs_deleted : report_.packs_punched);
  report_.disk_bytes_freed += allocated - std::min(allocated, pinned_bytes(judged.live));
}

void Collector::count_freed(const JudgedPack& judged) {
  report_.blobs_freed += judged.unheld.size() + judged.unlisted.size();
  report_.bytes_freed += total_bytes(judged.unheld) + total_bytes(judged.unlisted);
}

// What is cached stays so: a pack that compaction makes is this node's own.
void Collector::plan_compaction(const PackToc& toc, const JudgedPack& judged) {
  if (toc.cached) return;
  std::uint64_t live = total_bytes(judged.live);
  if (is_wasteful(pinned_bytes(judged.live), live)) {
    plan_.fragmented.push_back(toc.pack);
  } else if (live < kTinyLive) {
    plan_.tiny.push_back(toc.pack);
  }
}

CompactionPlan Collector::take_plan() {
  if (plan_.tiny.size() < kTinyPacksMin) plan_.tiny.clear();
  return std::move(plan_);
}

// An import's .toc appears in packs/ a moment before its .pack, which until then lies below tmp/.
Result<bool> Collector::is_being_made(PackId pack) {
  const std::string tmp = packs_.store_path() + "/tmp";
  auto names = list_directory(tmp);
  if (!names.ok() && names.error().code != Errc::not_found) return names.error();
  for (const std::string& name : names.ok() ? *names : std::vector<std::string>{})
    if (stat_file(fmt::format("{}/{}/{}.pack", tmp, name, pack_name(pack))).ok()) return true;
  return stat_file(pack_path(packs_.store_path(), pack)).ok();
}

Status Collector::clear_orphans() {
  const std::string directory = packs_.store_path() + "/packs";
  WEFT_TRY(std::vector<std::string> names, list_directory(directory));
  for (const std::string& name : names) {
    auto pack = pack_of_name(name, ".toc");
    if (!pack) pack = pack_of_name(name, ".toc.new");
    if (!pack) continue;
    bool leftover = name.ends_with(".new");  // of a gc that died: we are the only one
    if (!leftover && std::binary_search(names.begin(), names.end(), pack_name(*pack) + ".pack")) continue;
    if (!leftover) {
      WEFT_TRY(bool needed, is_being_made(*pack));
      if (needed) continue;
    }
    ++report_.stale_temporaries;
    if (!dry_run_) WEFT_CHECK(remove_file(fmt::format("{}/{}", directory, name)));
  }
  return {};
}

}  // namespace

Result<JudgedPack> judge_pack(BlobIndex& index, const PackToc& toc) {
  JudgedPack judged;
  for (const PackEntry& entry : toc.entries) {
    WEFT_TRY(std::optional<BlobPlace> place, index.find(entry.id));
    if (!place) {
      judged.unlisted.push_back(entry);
    } else if (place->pack != toc.pack || place->offset != entry.offset) {
      ++judged.moved;
    } else {
      WEFT_TRY(bool held, index.is_held(entry.id));
      (held ? judged.live : judged.unheld).push_back(entry);
    }
  }
  return judged;
}

std::uint64_t total_bytes(const std::vector<PackEntry>& entries) {
  std::uint64_t total = 0;
  for (const PackEntry& entry : entries) total += entry.id.length;
  return total;
}

std::uint64_t pinned_bytes(const std::vector<PackEntry>& entries) {
  std::uint64_t blocks = 0;
  std::uint64_t next = 0;  // the first block not counted
  for (const PackEntry& entry : entries) {
    std::uint64_t first = std::max(next, entry.offset / kPackBlock);
    next = (entry.offset + entry.id.length - 1) / kPackBlock + 1;
    blocks += next - std::min(first, next);
  }
  return blocks * kPackBlock;
}

bool is_wasteful(std::uint64_t taken, std::uint64_t needed) {
  return taken > needed && taken - needed > needed / kSlackShare + kSlack;
}

Result<Fd> open_exclusive(const std::string& path) {
  WEFT_TRY(Fd fd, open_file(path, O_RDWR));
  WEFT_CHECK(lock_fd(fd.get(), LockKind::exclusive, LockWait::no, path));
  return fd;
}

Status collect_packs(Packs& packs, const std::string& store_path, IndexAccess& index, const GcOptions& options,
                     Progress& progress, GcReport& report) {
  progress.phase("collecting packs");
  Collector collector(packs, index, options, report);
  WEFT_CHECK(collector.clear_temporaries());
  WEFT_TRY(std::vector<PackId> all, packs.list());
  for (PackId pack : all) {
    if (progress.cancelled()) return Error{Errc::cancelled, fmt::format("{}: gc stopped", store_path)};
    WEFT_CHECK(collector.sweep(pack));
  }
  WEFT_CHECK(collector.clear_orphans());
  CompactionPlan plan = collector.take_plan();
  if (options.dry_run) {
    report.packs_compacted += plan.fragmented.size() + plan.tiny.size();
    return {};
  }
  return compact_packs(packs, index, plan, progress, report);
}

}  // namespace weft
