#include "store/collecting/collector.h"

#include <algorithm>

#include <fmt/core.h>

#include "base/limits.h"
#include "catalog/apply.h"
#include "catalog/layout.h"
#include "diskformat/hash.h"
#include "index/gc_queue.h"
#include "index/pages.h"
#include "index/tables.h"
#include "os/sys.h"
#include "packs/collect.h"
#include "repair/rebuild.h"
#include "store/collecting/manifest_packer.h"
#include "store/collecting/reaper.h"
#include "store/publishing/large_publish.h"

namespace weft {
namespace {

// Returns a hash of the boot id; 0 if the kernel does not tell.
std::uint64_t this_boot() {
  const std::string boot = boot_id();
  return boot.empty() ? 0 : xxh3_64(std::as_bytes(std::span(boot)));
}

}  // namespace

// Returns those of these manifests that no version needs. Without the writer lock the result is only a guess: a publish
// places its manifest under that lock and commits before it releases the lock.
Result<std::vector<Digest>> Collector::unneeded(std::span<const Digest> manifests) {
  std::vector<Digest> unneeded;
  RenewedTxn now(parts_.index.env());
  for (const Digest& manifest : manifests) {
    WEFT_TRY(Txn * txn, now.get());
    WEFT_TRY(const std::optional<Bytes> needed, txn->get(Table::manifests, digest_key(manifest)));
    if (needed || parts_.reliances.is_needed(manifest) || parts_.is_left_young(parts_.manifests.path_of(manifest)))
      continue;
    unneeded.push_back(manifest);
  }
  return unneeded;
}

// Removes manifests of publishes that failed or died before their commit.
Status Collector::remove_orphans(const GcOptions& options, GcReport& report) {
  {
    WEFT_TRY(const WriterLock lock, parts_.index.lock());
    WEFT_TRY(const std::uint64_t temporaries, parts_.manifests.remove_temporaries(options.dry_run));
    report.stale_temporaries += temporaries;
  }
  WEFT_TRY(const std::vector<Digest> all, parts_.manifests.list());
  WEFT_TRY(const std::vector<Digest> likely, unneeded(all));
  for (std::size_t at = 0; at < likely.size(); at += limits::kBatchItems) {
    WEFT_TRY(const WriterLock lock, parts_.index.lock());
    const auto batch = std::span(likely).subspan(at, std::min(limits::kBatchItems, likely.size() - at));
    WEFT_TRY(const std::vector<Digest> orphans, unneeded(batch));
    report.stale_temporaries += orphans.size();
    if (options.dry_run) continue;
    for (const Digest& manifest : orphans) WEFT_CHECK(parts_.manifests.remove(manifest));
  }
  return {};
}

Status Collector::check_collectable(const GcOptions& options) {
  WEFT_TRY(WriterLock lock, parts_.index.lock());
  WEFT_TRY(Txn txn, parts_.index.read());
  WEFT_TRY(Counters counters, get_counters(txn));
  if (parts_.cluster.joined() &&
      (options.registry_revision == 0 || counters.registry_revision < options.registry_revision))
    return Error{Errc::busy, fmt::format("{}: expected all of the registry up to revision {}, got it up to {}",
                                         parts_.path, options.registry_revision, counters.registry_revision)};
  return check_judgeable(txn, parts_.cluster);
}

// True if gc has to look at all packs. A dead process may have left packs that the index does not know. It also leaves
// temporary files, unless the machine stopped. The next gc walks too if this walk is interrupted.
Result<bool> Collector::begin_walk(const GcOptions& options) {
  WEFT_TRY(const std::uint64_t stale, clear_temporaries(parts_.path, true));
  bool walked = false;
  {
    WEFT_TRY(Txn txn, parts_.index.read());
    WEFT_TRY(walked, has_walked(txn, this_boot()));
  }
  if (walked && stale == 0 && !options.all && (walked_ || !parts_.cluster.joined())) return false;
  if (options.dry_run || !walked) return true;
  WEFT_CHECK(end_walk(0));
  return true;
}

Status Collector::end_walk(std::uint64_t boot) {
  WEFT_TRY(const WriterLock lock, parts_.index.lock());
  return parts_.index.write(lock, [boot](Txn& txn) -> Status {
    WEFT_CHECK(note_walked(txn, boot));
    return bump_sequence(txn);
  });
}

Status Collector::collect(const GcOptions& options, Progress& progress, GcReport& report) {
  WEFT_CHECK(check_collectable(options));
  WEFT_TRY(const bool walk, begin_walk(options));
  progress.phase("reaping removed versions");
  if (!options.dry_run) WEFT_CHECK(abandon_attach(parts_, progress));
  WEFT_CHECK(Reaper(parts_).reap(options, progress, report));
  WEFT_CHECK(remove_orphans(options, report));
  if (!options.dry_run) WEFT_CHECK(ManifestPacker(parts_).run(progress));
  if (!options.dry_run) WEFT_CHECK(promotions_.undo_unneeded(walk));
  CollectInput input{options, walk, parts_.reliances.packs()};
  // A dry run has reaped nothing. It counts content of removed versions as dead unless they are open.
  const bool only_open = options.dry_run;
  input.content_of = [this, only_open](VersionId version) {
    return only_open ? parts_.extents_of_open(version) : parts_.extents_of(version);
  };
  input.is_relied_on = [this](const PackToc& toc) {
    return parts_.reliances.is_needed(toc.pack) ||
           (!toc.cached && parts_.is_left_young(parts_.packs.toc_file(toc.pack)));
  };
  WEFT_CHECK(collect_packs(parts_.packs, parts_.blobs, input, progress, report));
  if (!walk || options.dry_run) return {};
  walked_ = true;
  return end_walk(this_boot());
}

// On a full disk, gc starts again with the spare space, since each of its steps may need some. Afterwards the spare
// space is allocated again.
Result<GcReport> Collector::gc(const GcOptions& options, Progress& progress) {
  WEFT_CHECK(parts_.check_writable());
  WEFT_TRY(Fd collector, lock_collector(parts_.path, LockKind::exclusive, parts_.options.patience));
  GcReport report;
  Status status = collect(options, progress, report);
  if (!status.ok() && status.error().code == Errc::no_space && release_spare(parts_.path))
    status = collect(options, progress, report);
  if (!options.dry_run) make_spare(parts_.path);
  WEFT_CHECK(std::move(status));
  return report;
}

}  // namespace weft
