// The directory of assembled files, STORE/cache/assembled. weft-store.5 describes it:
//   <key>        an assembled file, whole; whoever uses it holds a shared flock on it
//   <key>.part   one that is being made, under its maker's exclusive flock; it has its full size from the start
//   <key>.<version>.pin   <key> is not to be evicted, as that version is pinned
//   bytes_max    the bound of those who name none, in decimal
//   lock         flock'ed exclusively for each change of this directory
// Modification times tell when a file was last used, to a second. Any process may die at any moment: a part without a
// lock is nobody's, and the next one who makes room removes it. A whole file was synced before it got its name.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/sys.h"
#include "weft/assembly.h"
#include "weft/content.h"
#include "weft/result.h"

namespace weft {

// Notes in an assembled file that it is used now. Not twice in a second: the file system writes that down each time.
void note_use(int fd);

// A file that is being made. Destroyed without AssembledDir::finish, it goes.
class AssembledPart {
 public:
  AssembledPart(Digest key, Fd fd, std::string path) : key_(key), fd_(std::move(fd)), path_(std::move(path)) {}
  ~AssembledPart();
  AssembledPart(AssembledPart&&) = default;
  AssembledPart& operator=(AssembledPart&&) = delete;

  const Digest& key() const { return key_; }
  int fd() const { return fd_.get(); }
  const std::string& path() const { return path_; }

 private:
  friend class AssembledDir;
  Digest key_;
  Fd fd_;
  std::string path_;
};

// Any thread.
class AssembledDir {
 public:
  // Makes the directory where it is not there, as its parent's owner. Errc::permission, Errc::read_only: files can be
  // found here, but not made. `bytes_max` as AssemblyOptions::bytes_max.
  static Result<AssembledDir> open(const std::string& store_path, std::optional<std::uint64_t> bytes_max);
  // To look at it only: nothing is made, and a directory that is not there is an empty one.
  static AssembledDir view(const std::string& store_path);

  const std::string& path() const { return path_; }

  // The file, locked for as long as the descriptor or a copy of it is open; this is a use of it. Errc::not_found also
  // where it has another size or is just being evicted.
  Result<Fd> find(const Digest& key, std::uint64_t size) const;
  bool has(const Digest& key) const;

  // Room for a file, and the right to make it. Errc::exists: it is there. Errc::busy: somebody makes it.
  // Errc::no_space: the bound would be passed with everything gone that may go, or the disk be left nearly full.
  // `disk_bytes`: how much of the file will take disk of its own.
  Result<AssembledPart> begin(const Digest& key, std::uint64_t size, std::uint64_t disk_bytes) const;
  // Gives the complete file its name, once its bytes are on disk.
  Status finish(AssembledPart part) const;

  // For a version's sake: each lets go of its own. True when it did not before.
  Result<bool> pin(const Digest& key, VersionId version) const;
  Status unpin(const Digest& key, VersionId version) const;  // fine when it is not pinned
  Status set_bytes_max(std::uint64_t bytes_max) const;       // for all who name no bound; evicts down to it
  std::uint64_t bytes_max() const;

  AssembledUsage usage() const;
  using Needed = std::map<Digest, std::set<VersionId>>;
  // Removes what dead makers left, evicts down to the bound, and all files that `needed` has not, and the pins of
  // versions that do not need them. Files in use stay. With `dry_run` nothing goes.
  Result<AssembledSweep> sweep(const Needed* needed, bool dry_run) const;
  // How many files this object's owner evicted.
  std::uint64_t evicted() const { return evicted_->load(std::memory_order_relaxed); }

 private:
  struct Entry;
  AssembledDir(std::string path, std::optional<std::uint64_t> bytes_max);
  Result<Fd> lock() const;
  std::vector<Entry> list() const;
  std::string file(const Digest& key) const;
  Status make_room(std::uint64_t bytes, std::uint64_t disk_bytes) const;
  std::string pin_file(const Digest& key, VersionId version) const;
  Status drop_pins(const Needed& needed) const;
  bool evict(const Entry& entry, bool dry_run) const;
  bool remove_stale(const Entry& entry, bool dry_run) const;
  void resemble_parent() const;
  void take_owner(int fd) const;

  std::string path_;
  std::optional<std::uint64_t> bytes_max_;
  std::shared_ptr<std::atomic<std::uint64_t>> evicted_;
};

}  // namespace weft
