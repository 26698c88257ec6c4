// The packs of assembled files, in STORE/cache. weft-store.5 describes the directory:
//   <id>.pack   a published file whose bytes lie in several packs of the store, as one
//   <id>.toc    its blobs and their chunk digests, copied from the .toc files of those packs, and the boot id under
//               which the file was last verified
//   tmp/<id>/   a file that is being made, with the lock of its maker
//   bytes_max   the bound of mounts that name none, in decimal
//   lock        locked exclusively for each change of this directory
// The id is the beginning of a SHA-256 over the file's blobs, and counts only if the .toc lists them. The .toc appears
// first and the .pack last; when a file is evicted, the .pack goes first. Readers hold no lock: their descriptor keeps
// the bytes of a file that is evicted meanwhile. Any process may die at any moment.
//
// A power failure may leave other bytes in a file than were written. A file of another boot is therefore verified
// before it is used, and deleted if it does not verify.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "diskformat/toc.h"
#include "os/file_ops.h"
#include "os/safe_path.h"
#include "os/sys.h"
#include "packs/pack_writer.h"
#include "packs/packs.h"
#include "packs/temp_area.h"
#include "weft/assembly.h"
#include "weft/cluster_store.h"
#include "weft/progress.h"
#include "weft/result.h"

namespace weft {

// A published file as assembling sees it.
struct AssembledSource {
  PackId id = 0;
  std::uint64_t size = 0;
  std::vector<ContentId> blobs;  // the file is these, one after the other
  std::string where;             // starts messages
};

// A file that is being made. Destroyed without AssembledPacks::finish, it goes.
struct AssembledPart {
  std::unique_ptr<TempArea> temp;
  std::unique_ptr<PackWriter> writer;  // its file has its full size from the start
};

// Any thread.
class AssembledPacks {
 public:
  struct Options {
    std::optional<std::uint64_t> bytes_max;            // as AssemblyOptions::bytes_max
    std::function<Result<std::set<PackId>>()> pinned;  // files of pinned versions; empty: none
    std::string boot = boot_id();
  };
  explicit AssembledPacks(const SafePath& store_path) : AssembledPacks(store_path, {}) {}
  AssembledPacks(const SafePath& store_path, Options options);

  const SafePath& path() const { return dir_.path(); }
  bool writable() const;  // this process may change the directory

  struct Found {
    std::shared_ptr<const OpenPack> pack;
    bool verified = false;  // under this boot; otherwise nobody may read it before verify()
  };
  // Errc::not_found. Errc::corrupt: what is there is not this file.
  Result<Found> find(const AssembledSource& file) const;
  bool has(const AssembledSource& file) const;  // and it is verified
  // Reads and hashes a file that another boot has left. Errc::corrupt: it is damaged, and deleted if this process may
  // change the directory.
  Status verify(const AssembledSource& file, const Progress& progress);

  // Space for a file, and the right to make it. Errc::exists: it is there. Errc::busy: another process makes it.
  // Errc::no_space: the file would pass the bound after the eviction of all that may go, or leave the disk nearly full.
  // `disk_bytes`: how much of the file will take disk space of its own.
  Result<AssembledPart> begin(const AssembledSource& file, std::uint64_t disk_bytes);
  // The same with a file that has these bytes, and becomes the assembled file as it lies (PackWriter::take_in).
  // Errc::unsupported where it cannot.
  Result<AssembledPart> begin_with(const AssembledSource& file, int fd, Take take);
  // Lists the blobs, makes the file durable and gives it its name.
  Status finish(AssembledPart part, std::vector<PackEntry> entries);

  Status set_bytes_max(std::uint64_t bytes_max);  // for all who name no bound; evicts down to it
  std::uint64_t bytes_max() const;
  AssembledUsage usage() const;
  // Removes what dead makers left, all files that are not `needed`, and what is above the bound. With `dry_run` nothing
  // goes.
  Result<AssembledSweep> sweep(const std::set<PackId>* needed, bool dry_run);
  std::vector<PackId> list() const;  // of files that have both parts
  const PackDir& dir() const { return dir_; }
  // Deletes the file that the reader has open, which is damaged. False: it stays.
  bool remove(const OpenPack& pack);
  // How many files this object evicted, and how many it found damaged.
  std::uint64_t evicted() const { return evicted_.load(std::memory_order_relaxed); }
  std::uint64_t damaged() const { return damaged_.load(std::memory_order_relaxed); }

 private:
  struct Judged {
    std::shared_ptr<const OpenPack> pack;  // kept open, so that its inode stays its own
    bool whole = false;
  };
  Result<AssembledPart> begin_part(const AssembledSource& file, std::uint64_t disk_bytes);
  Result<Fd> open_lock() const;
  Result<Fd> lock() const;
  Result<std::set<PackId>> pinned() const;
  Result<std::unique_ptr<TempArea>> make_temp(PackId id) const;
  std::vector<PackId> temporaries() const;
  std::uint64_t bytes_being_made() const;
  Result<std::vector<CachedPack>> entries(const std::set<PackId>& pinned) const;
  std::optional<bool> judged(const OpenPack& pack) const;
  void remember(std::shared_ptr<const OpenPack> pack, bool whole);
  Status note_verified(const OpenPack& pack, PackToc toc) const;
  Status remove_pair(PackId id) const;
  bool evict(PackId id);
  Status make_room(std::uint64_t bytes, std::uint64_t disk_bytes);
  std::uint64_t remove_stale(bool dry_run) const;
  void remove_litter() const;

  const PackDir dir_;
  const Options options_;
  std::atomic<std::uint64_t> evicted_{0}, damaged_{0};
  mutable std::mutex mutex_;
  std::map<PackId, Judged> judged_;  // guarded by mutex_; what verify() found and could not write down
};

}  // namespace weft
