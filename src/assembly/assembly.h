// Assembles files for one mount, on a background thread of low priority, one file at a time. Of several processes that
// want one file, one makes it and the others wait.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "base/json.h"
#include "packs/assembled.h"
#include "reading/open_file.h"
#include "weft/model/manifest.h"
#include "weft/programs/vfs.h"
#include "weft/store/assembly.h"

namespace weft {

// Returns the source of a published file. Files of equal content have one id. `where` starts messages.
AssembledSource assembled_source(const File& file, std::string where);
// Returns the store's assembled files. `store` outlives them. `bytes_max` as in AssemblyOptions.
std::unique_ptr<AssembledPacks> assembled_packs(Store& store, std::optional<std::uint64_t> bytes_max);

// If the file system can share a file's blocks, only the ends of runs are copied, which is less than this share of the
// file.
inline constexpr std::uint64_t kCopiedShare = 32;  // 1 / 32

struct AssemblyCounts {
  std::uint64_t made = 0, cloned_bytes = 0, copied_bytes = 0;
};
// Assembles a file on this thread; a file that an earlier boot has left is verified instead. Errc::exists: the file is
// assembled. Errc::busy, Errc::no_space as AssembledPacks::begin. Errc::not_found: a pack of its bytes is gone.
// Errc::corrupt: its bytes are damaged in the packs. Errc::unsupported: more than `copied_bytes_max` bytes cannot be
// shared. Errc::cancelled.
Status assemble_now(Store& store, AssembledPacks& packs, const AssembledSource& source, std::uint64_t block_bytes,
                    std::uint64_t copied_bytes_max, const std::function<bool()>& cancelled, AssemblyCounts& counts);

// Turns `fd`, a file with the bytes of `source`, into the assembled file without a copy (AssembledPacks::begin_with).
// The caller guarantees that the bytes are equal.
Status assemble_of(Store& store, AssembledPacks& packs, const AssembledSource& source, int fd, Take take);

// Any thread.
class Assembly {
 public:
  // `tell` is called on this object's thread, for each inode that wanted a file, once the file is assembled.
  Assembly(Store& store, std::unique_ptr<AssembledPacks> packs, std::function<void(Ino)> tell);
  ~Assembly() { stop(); }

  // Returns the assembled file; nullptr if there is none or it is not verified.
  std::shared_ptr<OpenFile> open(const AssembledSource& source, const ReadAhead& ahead);
  bool has(const AssembledSource& source) const { return packs_->has(source); }
  // Returns `composed`, wrapped so that it requests its assembly, or the verification of its assembled file, when the
  // reader has read enough and is done. An assembly that takes space is requested for a file that is opened again after
  // it was read, or read more than once through one open. If blocks can be shared, requests it at once.
  static std::shared_ptr<OpenFile> watch(const std::shared_ptr<Assembly>& assembly, std::shared_ptr<OpenFile> composed,
                                         std::shared_ptr<const AssembledSource> source, Ino ino);
  void want(std::shared_ptr<const AssembledSource> source, Ino ino);
  // Ends the thread, and gives up the file that is being made. `tell` is not called afterwards. Not from `tell`.
  void stop();

  // Writes members of a JSON object for .weft/status.
  void write_status(JsonWriter& json) const;

 private:
  struct Job {
    std::shared_ptr<const AssembledSource> source;
    std::set<Ino> inos;
  };
  using Time = std::chrono::steady_clock::time_point;

  // Returns the block size of the file system if this process may use that it can share blocks; else 0.
  std::uint64_t block_bytes() const { return writable_ ? packs_->block_bytes().value_or(0) : 0; }
  void note_read(PackId file);
  bool was_read(PackId file) const;
  void run();
  std::optional<Job> next();
  void attempt(Job job);
  void record_outcome(Job job, const Status& made);
  bool recently_failed(PackId file);

  Store& store_;
  const std::unique_ptr<AssembledPacks> packs_;
  const std::function<void(Ino)> tell_;
  const bool writable_;
  std::atomic<bool> stop_{false};
  std::atomic<std::uint64_t> opened_{0};  // opens of assembled files
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Job> jobs_;           // guarded by mutex_
  std::optional<PackId> active_;   // guarded by mutex_
  std::set<Ino> active_inos_;      // guarded by mutex_; inodes that want the active file
  std::map<PackId, Time> failed_;  // guarded by mutex_
  std::set<PackId> read_;          // guarded by mutex_; files of which a reader has read enough
  AssemblyCounts counts_;          // guarded by mutex_
  std::uint64_t given_up_ = 0;     // guarded by mutex_
  std::string last_problem_;       // guarded by mutex_
  std::mutex ending_;              // held while a thread joins thread_
  std::thread thread_;
};

}  // namespace weft
