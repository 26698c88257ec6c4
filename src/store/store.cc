#include "weft/store/store.h"

#include <fcntl.h>

#include <utility>

#include <fmt/core.h>

#include "base/log.h"
#include "base/text.h"
#include "catalog/cluster_files.h"
#include "catalog/layout.h"
#include "os/sys.h"
#include "repair/rebuild.h"
#include "store/store_impl.h"
#include "weft/model/version_content.h"
#include "weft/store/fsck.h"

namespace weft {

namespace {

// Rebuilds an index that is ahead of its journal. The registry then sends the changes after the rebuilt revision again.
Status rebuild_shown(const SafePath& path, const OpenOptions& options) {
  if (!options.decode) return {};
  log_warning(
      "{}: the machine stopped while changes were written, and the index is ahead of its journal; rebuilding it", path);
  auto report = rebuild_store(path, options.decode, {false, options.patience, false}, no_progress());
  if (!report.ok()) return std::move(report).error();
  for (const std::string& problem : report->problems) log_warning("{}: {}", path, problem);
  return {};
}

// Replays what an earlier writer has journaled and not indexed, so that the daemon's first look at its versions sees
// it. An error ends no start: later writers meet it again, and report it.
void show_journaled(StoreParts& parts) {
  const auto lock = parts.index.lock();
  if (!lock.ok()) log_warning("{}: the journal is not replayed yet: {}", parts.path, lock.error().message);
}

}  // namespace

Result<std::unique_ptr<StoreImpl>> StoreImpl::open(const std::string& path, const OpenOptions& options,
                                                   CommitHooks hooks) {
  Fd writes;
  WEFT_TRY(const SafePath directory, open_store_directory(path));
  if (options.write) {
    WEFT_TRY(writes, lock_against_daemon(directory));
  }
  WEFT_TRY(std::unique_ptr<StoreImpl> store, open_held(directory, options, std::move(hooks), std::move(writes)));
  if (options.write && store->cluster())
    return Error{Errc::read_only, fmt::format("{}: it belongs to cluster {}: only its daemon, weftd, writes to it",
                                              path, printable(store->cluster()->cluster))};
  return store;
}

Result<std::unique_ptr<StoreImpl>> StoreImpl::open_as_daemon(const std::string& path, const OpenOptions& options,
                                                             CommitHooks hooks) {
  OpenOptions writing = options;
  writing.write = true;
  const auto open = [&]() -> Result<std::unique_ptr<StoreImpl>> {
    WEFT_TRY(const SafePath directory, open_store_directory(path));
    WEFT_TRY(Fd writes, lock_as_daemon(directory, options.patience));
    return open_held(directory, writing, hooks, std::move(writes));
  };
  WEFT_TRY(std::unique_ptr<StoreImpl> store, open());
  auto whole = store->parts_.index.flush_shown();
  if (!whole.ok() && whole.error().code != Errc::corrupt) return std::move(whole).error();
  if (!whole.ok() || *whole) {
    show_journaled(store->parts_);
    return store;
  }
  const SafePath directory = store->directory();
  store.reset();
  WEFT_CHECK(rebuild_shown(directory, writing));
  WEFT_TRY(store, open());
  show_journaled(store->parts_);
  return store;
}

Result<std::unique_ptr<StoreImpl>> StoreImpl::open_held(const SafePath& path, const OpenOptions& options,
                                                        CommitHooks hooks, Fd writes) {
  WEFT_TRY(StoreIdentity identity, read_identity(path));
  if (options.write) {  // a killed maker may have left only one of the two files
    WEFT_TRY(const std::vector<SafePath> mended, mend_identity(path, identity));
    for (const SafePath& file : mended) log_warning("{}: it was damaged or gone, and is written again", file);
  }
  WEFT_TRY(std::optional<ClusterIdentity> cluster, read_cluster(path));
  auto parts = StoreParts::open(path, options, std::move(hooks), std::move(cluster));
  if (!parts.ok()) WEFT_CHECK(check_is_store(path));  // another process may just have removed the store
  if (!parts.ok()) return std::move(parts).error();
  return std::unique_ptr<StoreImpl>(
      new StoreImpl(std::move(identity.info), std::move(parts).value(), std::move(writes)));
}

Result<bool> StoreImpl::remove_unused() {
  WEFT_TRY(const bool alone, parts_.index.env().lock_alone());
  if (!alone) return false;
  WEFT_TRY(std::uint64_t journal, parts_.index.journal().size());
  WEFT_TRY(std::optional<Counters> mark, parts_.index.journal().mark());
  if (journal != 0 || !mark || mark->journal_end != 0) return false;
  WEFT_CHECK(remove_store(parts_.path));
  return true;
}

Result<bool> Store::remove_unused(std::unique_ptr<Store> store, bool with_directory) {
  const std::string path = store->path();
  WEFT_TRY(const Maker maker, lock_maker(path, {}));
  WEFT_TRY(bool removed, static_cast<StoreImpl&>(*store).remove_unused());
  if (removed) WEFT_CHECK(remove_maker_lock(maker.directory));
  if (removed && with_directory) static_cast<void>(remove_empty_directory(path));
  return removed;
}

Result<Fd> index_file(const std::string& store_path) {
  WEFT_TRY(const SafePath store, open_store_directory(store_path));
  return open_file(store / "index/data.mdb", O_RDONLY);
}

Result<Fd> open_versions_file(const std::string& store_path) {
  WEFT_TRY(const SafePath store, open_store_directory(store_path));
  return OpenVersions::open_file_in(store / "index");
}

Status Store::create(const std::string& path, const CreateOptions& options) {
  return create_store(path, options);
}

Result<std::unique_ptr<Store>> Store::open(const std::string& path, const OpenOptions& options) {
  WEFT_TRY(std::unique_ptr<StoreImpl> store, StoreImpl::open(path, options));
  return std::unique_ptr<Store>(std::move(store));
}

Result<std::unique_ptr<ClusterStore>> ClusterStore::open(const std::string& path, const OpenOptions& options) {
  WEFT_TRY(std::unique_ptr<StoreImpl> store, StoreImpl::open_as_daemon(path, options));
  return std::unique_ptr<ClusterStore>(std::move(store));
}

Result<FsckReport> Store::rebuild(const std::string& path, const ContentDecoder& decode, Progress& progress,
                                  const RebuildOptions& options) {
  WEFT_TRY(const SafePath directory, open_damaged_store(path));
  return rebuild_store(directory, decode, options, progress);
}

Result<FsckReport> Store::rebuild(const std::string& path, const ContentDecoder& decode, Progress& progress) {
  return rebuild(path, decode, progress, {});
}

}  // namespace weft
