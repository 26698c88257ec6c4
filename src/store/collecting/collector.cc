#include "store/collecting/collector.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

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
#include "store/publishing/promotions.h"

namespace weft {
namespace {

// Returns a hash of the boot id; 0 if the kernel does not tell.
std::uint64_t this_boot() {
  const std::string boot = boot_id();
  return boot.empty() ? 0 : xxh3_64(std::as_bytes(std::span(boot)));
}

// Returns those of these manifests that no version needs. Without the writer lock the result is only a guess: a publish
// places its manifest under that lock and commits before it releases the lock.
Result<std::vector<Digest>> unneeded(StoreParts& parts, std::span<const Digest> manifests) {
  std::vector<Digest> unneeded;
  RenewedTxn now(parts.index.env());
  for (const Digest& manifest : manifests) {
    WEFT_TRY(Txn * txn, now.get());
    WEFT_TRY(const std::optional<Bytes> needed, txn->get(Table::manifests, digest_key(manifest)));
    if (needed || parts.reliances.is_needed(manifest) || parts.is_left_young(parts.manifests.path_of(manifest)))
      continue;
    unneeded.push_back(manifest);
  }
  return unneeded;
}

// Removes manifests of publishes that failed or died before their commit.
Status remove_orphans(StoreParts& parts, const GcOptions& options, GcReport& report) {
  {
    WEFT_TRY(const WriterLock lock, parts.index.lock());
    WEFT_TRY(const std::uint64_t temporaries, parts.manifests.remove_temporaries(options.dry_run));
    report.stale_temporaries += temporaries;
  }
  WEFT_TRY(const std::vector<Digest> all, parts.manifests.list());
  WEFT_TRY(const std::vector<Digest> likely, unneeded(parts, all));
  for (std::size_t at = 0; at < likely.size(); at += limits::kBatchItems) {
    WEFT_TRY(const WriterLock lock, parts.index.lock());
    const auto batch = std::span(likely).subspan(at, std::min(limits::kBatchItems, likely.size() - at));
    WEFT_TRY(const std::vector<Digest> orphans, unneeded(parts, batch));
    report.stale_temporaries += orphans.size();
    if (options.dry_run) continue;
    for (const Digest& manifest : orphans) WEFT_CHECK(parts.manifests.remove(manifest));
  }
  return {};
}

Status check_collectable(StoreParts& parts, const GcOptions& options) {
  WEFT_TRY(WriterLock lock, parts.index.lock());
  WEFT_TRY(Txn txn, parts.index.read());
  WEFT_TRY(Counters counters, get_counters(txn));
  if (parts.cluster.joined() &&
      (options.registry_revision == 0 || counters.registry_revision < options.registry_revision))
    return Error{Errc::busy, fmt::format("{}: expected all of the registry up to revision {}, got it up to {}",
                                         parts.path, options.registry_revision, counters.registry_revision)};
  return check_judgeable(txn, parts.cluster);
}

Status end_walk(StoreParts& parts, std::uint64_t boot) {
  WEFT_TRY(const WriterLock lock, parts.index.lock());
  return parts.index.write(lock, [boot](Txn& txn) -> Status {
    WEFT_CHECK(note_walked(txn, boot));
    return bump_sequence(txn);
  });
}

// True if gc has to look at all packs. A dead process may have left packs that the index does not know. It also leaves
// temporary files, unless the machine stopped. The next gc walks too if this walk is interrupted.
Result<bool> begin_walk(StoreParts& parts, const GcOptions& options) {
  WEFT_TRY(const std::uint64_t stale, clear_temporaries(parts.path / "tmp", true));
  bool walked = false;
  {
    WEFT_TRY(Txn txn, parts.index.read());
    WEFT_TRY(walked, has_walked(txn, this_boot()));
  }
  if (walked && stale == 0 && !options.all && (parts.walked || !parts.cluster.joined())) return false;
  if (options.dry_run || !walked) return true;
  WEFT_CHECK(end_walk(parts, 0));
  return true;
}

Status collect(StoreParts& parts, const GcOptions& options, Progress& progress, GcReport& report) {
  WEFT_CHECK(check_collectable(parts, options));
  WEFT_TRY(const bool walk, begin_walk(parts, options));
  progress.phase("reaping removed versions");
  if (!options.dry_run) WEFT_CHECK(abandon_attach(parts, progress));
  WEFT_CHECK(reap(parts, options, progress, report));
  WEFT_CHECK(remove_orphans(parts, options, report));
  if (!options.dry_run) WEFT_CHECK(pack_manifests(parts, progress));
  if (!options.dry_run) WEFT_CHECK(undo_unneeded_promotions(parts, walk));
  CollectInput input{options, walk, parts.reliances.packs()};
  // A dry run has reaped nothing. It counts content of removed versions as dead unless they are open.
  const bool only_open = options.dry_run;
  input.content_of = [&parts, only_open](VersionId version) {
    return only_open ? parts.extents_of_open(version) : parts.extents_of(version);
  };
  input.is_relied_on = [&parts](const PackToc& toc) {
    return parts.reliances.is_needed(toc.pack) || (!toc.cached && parts.is_left_young(parts.packs.toc_file(toc.pack)));
  };
  WEFT_CHECK(collect_packs(parts.packs, parts.blobs, input, progress, report));
  if (!walk || options.dry_run) return {};
  parts.walked = true;
  return end_walk(parts, this_boot());
}

}  // namespace

// On a full disk, gc starts again with the spare space, since each of its steps may need some. Afterwards the spare
// space is allocated again.
Result<GcReport> gc(StoreParts& parts, const GcOptions& options, Progress& progress) {
  WEFT_CHECK(parts.check_writable());
  WEFT_TRY(Fd collector, lock_collector(parts.path, LockKind::exclusive, parts.options.patience));
  GcReport report;
  Status status = collect(parts, options, progress, report);
  if (!status.ok() && status.error().code == Errc::no_space && release_spare(parts.path))
    status = collect(parts, options, progress, report);
  if (!options.dry_run) make_spare(parts.path);
  WEFT_CHECK(std::move(status));
  return report;
}

}  // namespace weft
