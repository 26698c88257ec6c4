// The packs of assembled files, in STORE/cache. weft-store.5 describes the directory:
//   <id>.pack   a published file whose bytes lie in several packs of the store, as one
//   <id>.toc    its blobs and their chunk digests, copied from the .toc files of those packs, and the boot id under
//               which the file was last verified
//   tmp/<id>/   a file that is being assembled, with the lock of the process that assembles it
//   bytes_max   the size limit for mounts that set none, in decimal
//   lock        locked exclusively for each change of this directory
// The id is the beginning of a SHA-256 over the file's blobs, and counts only if the .toc lists them. The .toc appears
// first and the .pack last. Eviction removes the .pack first. Readers hold no lock: their open descriptor keeps the
// bytes of an evicted file readable. Any process may die at any moment.
//
// After a power failure a file may hold other bytes than were written. So a file of an earlier boot is verified before
// it is used, and deleted if it is damaged.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "diskformat/toc.h"
#include "os/file_ops.h"
#include "os/safe_path.h"
#include "os/sys.h"
#include "packs/pack_writer.h"
#include "packs/packs.h"
#include "packs/temp_area.h"
#include "weft/progress.h"
#include "weft/result.h"
#include "weft/store/assembly.h"
#include "weft/store/cluster_store.h"

namespace weft {

// A published file that can be assembled.
struct AssembledSource {
  PackId id = 0;
  std::uint64_t size = 0;
  std::vector<ContentId> blobs;  // in file order, without gaps
  std::string where;             // for messages
};

// A file that is being assembled. Unless AssembledPacks::finish() takes it, the destructor deletes the file.
struct AssembledPart {
  std::unique_ptr<TempArea> temp;
  std::unique_ptr<PackWriter> writer;  // the file has its full size from the start
};

// Any thread.
class AssembledPacks {
 public:
  struct Options {
    std::optional<std::uint64_t> bytes_max;            // as AssemblyOptions::bytes_max
    std::function<Result<std::set<PackId>>()> pinned;  // packs of pinned versions; an empty function: none
    // Returns the block size of a file system that shares the blocks of assembled files, which then take no space; 0 of
    // one that does not; an error if that cannot be found out now. An empty function: 0.
    std::function<Result<std::uint64_t>()> block_bytes;
    std::string boot = boot_id();
  };
  explicit AssembledPacks(const SafePath& store_path) : AssembledPacks(store_path, {}) {}
  AssembledPacks(const SafePath& store_path, Options options);

  const SafePath& path() const { return dir_.path(); }
  bool writable() const;  // true if this process may change the directory
  // Returns Options::block_bytes, once it is known; until then nothing, and each call tries again.
  std::optional<std::uint64_t> block_bytes() const;

  struct Found {
    std::shared_ptr<const OpenPack> pack;
    bool verified = false;  // under this boot; if not, call verify() before any read
  };
  // Errc::not_found. Errc::corrupt: the stored file has other bytes.
  Result<Found> find(const AssembledSource& file) const;
  bool has(const AssembledSource& file) const;  // true if the file is stored and verified
  // Reads and hashes a file of an earlier boot. Errc::corrupt: the file is damaged, and deleted if this process may
  // change the directory.
  Status verify(const AssembledSource& file, const Progress& progress);

  // Makes space for a file and reserves its id. Errc::exists: already assembled. Errc::busy: another process assembles
  // it. Errc::no_space: even after all possible evictions the file would exceed the size limit or leave the disk nearly
  // full. `disk_bytes`: how much new disk space the file will take.
  Result<AssembledPart> begin(const AssembledSource& file, std::uint64_t disk_bytes);
  // The same for a file `fd` that already has these bytes: that file itself becomes the assembled file
  // (PackWriter::take_in). Errc::unsupported if it cannot.
  Result<AssembledPart> begin_with(const AssembledSource& file, int fd, Take take);
  // Lists the blobs, makes the file durable and gives it its name.
  Status finish(AssembledPart part, std::vector<PackEntry> entries);

  Status set_bytes_max(std::uint64_t bytes_max);  // for mounts that set no limit; evicts files above it
  AssembledUsage usage() const;
  // Removes the temporary files of dead processes, the files that are not in `needed` (nullptr: all are needed), and
  // the least recently used files above the size limit. A dry run only counts them.
  Result<AssembledSweep> sweep(const std::set<PackId>* needed, bool dry_run);
  std::vector<PackId> list() const;  // files with both .pack and .toc
  const PackDir& dir() const { return dir_; }
  // Deletes the damaged file that `pack` has open. False if it could not be deleted.
  bool remove(const OpenPack& pack);
  // Counts of this object: evicted files, damaged files.
  std::uint64_t evicted() const { return evicted_.load(std::memory_order_relaxed); }
  std::uint64_t damaged() const { return damaged_.load(std::memory_order_relaxed); }

 private:
  struct Judged {
    std::shared_ptr<const OpenPack> pack;  // open, so that the inode number is not reused
    bool whole = false;
  };
  Result<AssembledPart> begin_part(const AssembledSource& file, std::uint64_t disk_bytes, std::uint64_t share);
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
  bool evict(PackId id);
  Status make_room(PackId id, std::uint64_t bytes, std::uint64_t disk_bytes, std::uint64_t share);
  std::optional<std::uint64_t> chosen_max() const;  // the limit that was set for this process, else for the store
  // Returns the size limit for these files together: the one that was set, else the default of AssemblyOptions, where
  // `share` is that of the files without a pin.
  std::uint64_t bound_of(const std::vector<CachedPack>& packs, std::uint64_t share) const;
  // Returns the default limit of the files without a pin: the larger one if it is unknown whether blocks are shared.
  // Call it before the directory is locked, because it measures the store's packs, which may be many.
  std::uint64_t share_max() const;
  std::uint64_t bytes_of_packs() const;  // on the disk, of the store's packs; measured now or a short time ago
  void remove_litter() const;

  const PackDir dir_;
  const SafePath packs_;  // of the store
  const Options options_;
  std::atomic<std::uint64_t> evicted_{0}, damaged_{0};
  mutable std::mutex mutex_;
  std::map<PackId, Judged> judged_;  // guarded by mutex_; results that verify() could not write to the .toc
  mutable std::optional<std::uint64_t> block_bytes_;              // guarded by mutex_
  mutable std::uint64_t packs_bytes_ = 0;                         // guarded by mutex_; counts until measured_until_
  mutable std::chrono::steady_clock::time_point measured_until_;  // guarded by mutex_
};

}  // namespace weft
