// Rebuilds a store on the disk: replaces the index by a new one, and adapts packs and journal to it.
#include <fcntl.h>

#include <utility>

#include <fmt/core.h>

#include "catalog/cluster_files.h"
#include "catalog/layout.h"
#include "diskformat/pack_names.h"
#include "diskformat/toc.h"
#include "index/open_versions.h"
#include "index/scratch_index.h"
#include "os/file_lock.h"
#include "packs/assembled.h"
#include "packs/verify.h"
#include "repair/rebuild.h"

namespace weft {
namespace {

Result<RebuildOutcome> filled(Env& env, const RebuildInput& input, Progress& progress, FsckReport& report) {
  WEFT_TRY(const auto rebuilder, Rebuilder::begin(env, input, progress, report));
  return rebuilder->fill();
}

// Truncates the journal after its last readable record, appends the repair, and repairs both copies. Call before the
// new index is in place. If the process dies in between, the old index does not match the journal and reports that.
Status repair_journal(const Journal& journal, Env& env, const RebuildOutcome& outcome) {
  WEFT_TRY(WriterLock lock, env.lock_writer());
  WEFT_CHECK(journal.truncate(outcome.journal_end));
  Counters counters;
  WEFT_CHECK(env.write(lock, [&](Txn& txn) -> Status {
    WEFT_TRY(counters, get_counters(txn));
    if (!outcome.repair) return {};
    counters.journal_end = outcome.journal_end + encode_event(*outcome.repair, outcome.journal_end).size();
    return put_counters(txn, counters);
  }));
  if (outcome.repair) WEFT_CHECK(journal.append(encode_event(*outcome.repair, outcome.journal_end), counters));
  return journal.mend(counters.journal_end, counters);
}

// Returns the places in these packs according to the old index. Skips unreadable rows.
Result<std::map<PackId, std::vector<PlacedBlob>>> old_places(const SafePath& index_dir, const std::set<PackId>& packs) {
  std::map<PackId, std::vector<PlacedBlob>> places;
  auto env = Env::open(index_dir, {});
  auto txn = env.ok() ? (*env)->read() : Result<Txn>(std::move(env).error());
  const Status read =
      txn.ok() ? each_entry(*txn, Table::blobs, {},
                            [&](const Entry& entry) -> Status {
                              auto row = row_from<BlobRow>(*txn, Table::blobs, entry.key, entry.value);
                              if (row.ok() && packs.contains(row->place.pack))
                                places[row->place.pack].push_back({blob_id(entry.key), row->place.offset, 0});
                              return {};
                            })
               : Status(std::move(txn).error());
  if (!read.ok() && !is_damage(read.error())) return read.error();
  return places;
}

// Keeps the damaged table of contents as PACK.toc.lost for a later repair; an empty file if the table is gone. Keeps
// the file of an earlier loss, which lists more.
Status keep_lost_toc(const SafePath& path, PackId pack) {
  const SafePath kept = lost_toc_path(path, pack);
  Status linked = link_file(toc_path(path, pack), kept);
  if (!linked.ok() && linked.error().code == Errc::not_found) {
    auto empty = open_file(kept, O_WRONLY | O_CREAT);
    return empty.ok() ? Status{} : Status{std::move(empty).error()};
  }
  return linked.ok() || linked.error().code == Errc::exists ? Status{} : linked;
}

Status put_packs(const SafePath& path, const PackDir& packs, const RebuildOutcome& outcome) {
  const FoundPacks& found = outcome.packs;
  if (found.fresh) {
    WEFT_CHECK(found.fresh->sync());
    WEFT_CHECK(found.fresh->place());
  }
  for (const FoundManifests& manifests : found.manifests) {
    WEFT_CHECK(repair_manifests(packs, manifests));
    if (manifests.lists_more) WEFT_CHECK(replace_toc(packs.toc_file(manifests.toc.pack), manifests.toc));
  }
  if (!found.manifests.empty()) WEFT_CHECK(sync_directory(packs.path()));
  for (const PackToc& toc : found.remade) {
    if (outcome.missing != 0) WEFT_CHECK(keep_lost_toc(path, toc.pack));
    WEFT_CHECK(replace_toc(toc_path(path, toc.pack), toc));
  }
  return found.remade.empty() ? Status{} : sync_directory(path / "packs");
}

// Removes damaged assembled files. Packs have the needed blobs already.
Status drop_damaged_assembled(const SafePath& path, Progress& progress, FsckReport& report) {
  AssembledPacks assembled(path);
  FsckReport found;
  WEFT_CHECK(verify_assembled(assembled, true, DamagedFiles::remove, progress, found));
  report.repaired.insert(report.repaired.end(), found.problems.begin(), found.problems.end());
  return {};
}

}  // namespace

Result<Fd> lock_collector(const SafePath& store_path, LockKind kind, const Patience& patience) {
  const SafePath path = store_path / "index/gc";
  auto fd = open_file(path, kind == LockKind::shared ? O_RDONLY : O_RDWR);
  if (!fd.ok() && fd.error().code == Errc::not_found)
    return Error{Errc::corrupt, fmt::format("{}: it is gone; run `weft fsck --rebuild`", path)};
  if (fd.ok()) WEFT_CHECK(wait_for_lock(fd->get(), kind, patience, path));
  return fd;
}

Result<FsckReport> rebuild_store(const SafePath& path, const ContentDecoder& decode, const RebuildOptions& options,
                                 Progress& progress) {
  WEFT_TRY(const StoreIdentity identity, recover_identity(path));
  WEFT_TRY(Fd no_daemon, lock_against_daemon(path));
  WEFT_TRY(std::optional<ClusterIdentity> cluster, read_cluster(path));
  const SafePath index_dir = path / "index";
  WEFT_CHECK(make_directories(index_dir));
  WEFT_CHECK(Env::create_locks(index_dir));
  WEFT_TRY(Fd collector, lock_collector(path, LockKind::exclusive, options.patience));
  WEFT_TRY(WriterLock lock, Env::lock_writer(index_dir, options.patience));
  WEFT_CHECK(remove_stale_scratch(index_dir));
  progress.phase("rebuilding the index");
  Journal journal(path);
  PackDir packs(packs_dir(path));
  FsckReport report;
  WEFT_TRY(const std::vector<SafePath> identities, mend_identity(path, identity));
  const char* said =
      identities.size() < 2 ? ": it was damaged or gone" : ": it was damaged or gone, and the store has a new id";
  for (const SafePath& file : identities) report.repaired.push_back(file.str() + said);
  if (options.data) {
    WEFT_TRY(const std::vector<Digest> mended, Manifests(path).mend());
    for (const Digest& digest : mended)
      report.repaired.push_back(fmt::format("manifest {}: it lay under another name", to_hex(digest)));
  }
  WEFT_TRY(ScratchIndex scratch, ScratchIndex::make(index_dir));
  const Manifests manifests(path, PackedManifests{packs, scratch.env()});
  RebuildInput input{path, journal, manifests, packs, decode, options.accept_loss, true, options.data};
  input.placed = [&index_dir](const std::set<PackId>& lost) { return old_places(index_dir, lost); };
  WEFT_TRY(const auto open_versions, OpenVersions::open(index_dir, -1));
  WEFT_TRY(OpenVersions::Claims claims, open_versions->begin_claims());
  input.unreaped = [&claims](VersionId version) {
    const auto claimed = claims.claim(version);
    return !claimed.ok() || !*claimed;
  };
  if (cluster) input.node = cluster->node;
  WEFT_TRY(RebuildOutcome outcome, filled(scratch.env(), input, progress, report));
  report.refused = outcome.loses() && !options.accept_loss;
  if (report.refused) report.repaired.clear();
  if (report.refused) return report;
  WEFT_CHECK(put_packs(path, packs, outcome));
  WEFT_CHECK(repair_journal(journal, scratch.env(), outcome));
  WEFT_CHECK(scratch.close());
  WEFT_CHECK(rename_file(scratch.dir() / "data.mdb", index_dir / "data.mdb"));
  WEFT_CHECK(sync_directory(index_dir));
  report.rebuilt = true;
  if (options.data) WEFT_CHECK(drop_damaged_assembled(path, progress, report));
  return report;
}

}  // namespace weft
