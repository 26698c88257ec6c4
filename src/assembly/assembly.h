// One mount's part in assembling: a thread that does it in the background, at low priority, one file at a time.
// Between processes one makes a file, the others wait for it.
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
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/json.h"
#include "packs/assembled.h"
#include "reading/open_file.h"
#include "weft/assembly.h"
#include "weft/manifest.h"
#include "weft/vfs.h"

namespace weft {

// Files of equal content have one id.
AssembledSource assembled_source(const File& file, std::string where);
// The store's assembled files. `store` outlives them.
std::unique_ptr<AssembledPacks> assembled_packs(Store& store, std::optional<std::uint64_t> bytes_max);

// If the file system can share a file's blocks, only the ends of runs are copied: less than this share of the file.
inline constexpr std::uint64_t kCopiedShare = 32;  // 1 / 32

struct AssemblyCounts {
  std::uint64_t made = 0, cloned_bytes = 0, copied_bytes = 0;
};
// Makes the file now, on this thread; one that another boot has left is verified first. Errc::exists, busy, no_space as
// AssembledPacks::begin; not_found: its bytes are gone; corrupt: its bytes are damaged in the packs; cancelled.
// `copied_bytes_max`: Errc::unsupported if more of it could not be shared.
Status assemble_now(Store& store, AssembledPacks& packs, const AssembledSource& source, std::uint64_t block_bytes,
                    std::uint64_t copied_bytes_max, const std::function<bool()>& cancelled, AssemblyCounts& counts);

// Makes it of a file that has these bytes, without a copy (AssembledPacks::begin_with). The caller knows that it has.
Status assemble_of(Store& store, AssembledPacks& packs, const AssembledSource& source, int fd, Take take);

// Any thread.
class Assembly {
 public:
  // `tell` is called from the thread of this object for each inode that asked for a file that is there now.
  Assembly(Store& store, std::unique_ptr<AssembledPacks> packs, std::function<void(Ino)> tell);
  ~Assembly() { stop(); }
  Assembly(const Assembly&) = delete;
  Assembly& operator=(const Assembly&) = delete;

  // The assembled file; nullptr if there is none that is verified.
  std::shared_ptr<OpenFile> open(const AssembledSource& source, const ReadAhead& ahead);
  bool has(const AssembledSource& source) const { return packs_->has(source); }
  // `composed`, with its file made, or verified, once its reader is done with it: at once where that costs little.
  static std::shared_ptr<OpenFile> watch(const std::shared_ptr<Assembly>& assembly, std::shared_ptr<OpenFile> composed,
                                         std::shared_ptr<const AssembledSource> source, Ino ino);
  void want(std::shared_ptr<const AssembledSource> source, Ino ino);
  // A file that is being made is given up; `tell` is not called any more. Not from `tell`.
  void stop();

  // An object's members for .weft/status.
  void write_status(JsonWriter& json) const;

 private:
  struct Job {
    std::shared_ptr<const AssembledSource> source;
    std::set<Ino> inos;
  };
  using Time = std::chrono::steady_clock::time_point;

  void run();
  std::optional<Job> next();
  void attempt(Job job);
  void settle(Job job, const Status& made);
  bool recently_failed(PackId file);

  Store& store_;
  const std::unique_ptr<AssembledPacks> packs_;
  const std::function<void(Ino)> tell_;
  const bool writable_;
  const std::uint64_t block_bytes_;  // of a file system that can share blocks; else 0
  std::atomic<bool> stop_{false};
  std::atomic<std::uint64_t> opened_{0};  // from assembled files
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Job> jobs_;           // guarded by mutex_
  std::optional<PackId> active_;   // guarded by mutex_
  std::set<Ino> active_inos_;      // guarded by mutex_; who asks for the active one meanwhile
  std::map<PackId, Time> failed_;  // guarded by mutex_
  AssemblyCounts counts_;          // guarded by mutex_
  std::uint64_t given_up_ = 0;     // guarded by mutex_
  std::string last_problem_;       // guarded by mutex_
  std::mutex ending_;              // one thread joins
  std::thread thread_;
};

}  // namespace weft
