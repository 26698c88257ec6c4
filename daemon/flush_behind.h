// Takes versions that were published into memory to the disk, in the background, and tells the registry when all of a
// version is there (Viper, ICPP 2024: "memory-first" updates with a flush behind). The page cache is the memory: a
// flush writes the pages of packs that are served already, so that there is no second copy. Versions go oldest first,
// and what they are made of before them. After the machine has stopped, a version that is not whole any more is
// removed, and its record says why.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "weft/cluster_store.h"
#include "weft/registry.h"
#include "weft/result.h"

namespace weft {

struct FlushStatus {
  std::uint64_t versions = 0;   // of this node that are in memory
  std::uint64_t bytes = 0;      // of their packs that may not be on the disk
  std::uint64_t oldest_ns = 0;  // when the oldest of them was published; 0: there is none
  std::uint64_t kept = 0;       // since the start: versions that reached the disk
  std::uint64_t lost = 0;       // and those that were lost when the machine stopped before
  std::string problem;          // why the last try failed; "" when it did not
};

// Any thread.
class FlushBehind {
 public:
  using Cancelled = std::function<bool()>;
  // `node` names this one in what is said of lost versions. `bytes_max`: unsynced bytes, at most. All outlive this.
  FlushBehind(ClusterStore& store, Registry& registry, std::string node, std::uint64_t bytes_max);
  ~FlushBehind();  // when the piece that is being written is on the disk
  FlushBehind(const FlushBehind&) = delete;
  FlushBehind& operator=(const FlushBehind&) = delete;

  void set_max(std::uint64_t bytes_max);
  // The registry has told of versions. Versions of this node may be among them that are in memory.
  void look_again();

  // A publish while it runs. No piece is begun meanwhile, for some seconds at most: its own syncs wait for none.
  class Publish {
   public:
    Publish(Publish&& other) noexcept : owner_(other.owner_), bytes_(other.bytes_) { other.owner_ = nullptr; }
    Publish& operator=(Publish&&) = delete;
    ~Publish();
    bool in_memory() const { return bytes_ != 0; }

   private:
    friend class FlushBehind;
    Publish(FlushBehind* owner, std::uint64_t bytes) : owner_(owner), bytes_(bytes) {}
    FlushBehind* owner_;
    std::uint64_t bytes_;  // that it may leave unsynced
  };
  // Begins one that brings at most so many bytes. To be in memory it waits until there is room for them; one that is
  // larger than the bound is not in memory. Errc::cancelled.
  Result<Publish> begin_publish(std::uint64_t bytes, bool in_memory, const Cancelled& cancelled);

  // Until the version is not in memory any more. Errc::absent: it was lost. Errc::cancelled.
  Status wait_for(VersionId version, const Cancelled& cancelled);
  FlushStatus status();

 private:
  using Clock = std::chrono::steady_clock;
  struct Waiting {
    VersionRow row;
    std::uint64_t bytes = 0;  // unsynced
  };
  void run();
  Result<std::vector<Waiting>> look();
  void show(const std::vector<Waiting>& waiting);
  Status round();
  Result<bool> settle(const VersionRow& version);
  Status keep(const VersionRow& version);
  Status lose(const VersionRow& version);
  Status pace();
  void end_publish(std::uint64_t bytes);
  Result<bool> is_in_memory(VersionId version);

  ClusterStore& store_;
  Registry& registry_;
  const std::string node_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ending_ = false;  // all below are guarded by mutex_
  bool look_ = true;     // something was published since the last look began
  std::uint64_t bytes_max_;
  unsigned publishing_ = 0;     // publishes that run
  std::uint64_t promised_ = 0;  // bytes that these may leave unsynced
  std::uint64_t fresh_ = 0;     // the same of those that ended since the last look began
  FlushStatus status_;          // of the last look, and since
  std::thread thread_;
};

}  // namespace weft
