// Writes versions that were published into memory to the disk, in the background, and reports each complete version to
// the registry (Viper, ICPP 2024: "memory-first" updates with a flush behind). The memory is the page cache: a flush
// writes the pages of packs that are already served, so there is no second copy. The oldest version is flushed first,
// with the blobs of this node that it needs. After a crash of the machine, a version that lost bytes is removed, with
// the reason in its record.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "base/worker.h"
#include "daemon/background/memory_promises.h"
#include "weft/cluster/registry.h"
#include "weft/result.h"
#include "weft/store/cluster_store.h"

namespace weft {

struct FlushStatus {
  std::uint64_t versions = 0;   // versions of this node in memory
  std::uint64_t bytes = 0;      // unsynced bytes of their packs
  std::uint64_t oldest_ns = 0;  // publish time of the oldest of these versions; 0: no version is in memory
  std::uint64_t kept = 0;       // versions that reached the disk since the start
  std::uint64_t lost = 0;       // versions found lost since the start, after a crash of the machine
  std::string problem;          // error of the last round; "" if it succeeded
};

// Any thread.
class FlushBehind {
 public:
  using Cancelled = std::function<bool()>;
  // `node` is this node's name in the records of lost versions. `bytes_max` bounds the unsynced bytes. `time`: of the
  // pauses between rounds. `store`, `memory`, `registry` and `time` outlive this.
  FlushBehind(Store& store, MemoryVersions& memory, Registry& registry, std::string node, std::uint64_t bytes_max,
              const TimeSource& time = steady_time());
  ~FlushBehind();  // waits until the current piece is on the disk

  void set_max(std::uint64_t bytes_max);
  // Call after changes of the registry: they may contain versions of this node that are in memory.
  void wake() { worker_.wake(); }

  // A running publish. In its first minute a piece waits for some seconds, so that the publish's own syncs do not wait.
  class Publish {
   public:
    Publish(Publish&& other) noexcept
        : owner_(other.owner_), promise_(other.promise_), in_memory_(other.in_memory_), version_(other.version_) {
      other.owner_ = nullptr;
    }
    Publish& operator=(Publish&&) = delete;
    ~Publish();
    bool in_memory() const { return in_memory_; }
    // False: the promise of memory has ended (memory_promises.h), and the publish should be given up.
    bool lasts() const;
    // Call before the version is committed. Errc::timed_out: the promise has ended.
    Status commit();
    void published(VersionId version) { version_ = version; }

   private:
    friend class FlushBehind;
    Publish(FlushBehind* owner, MemoryPromises::Publish promise, bool in_memory)
        : owner_(owner), promise_(promise), in_memory_(in_memory) {}
    FlushBehind* owner_;
    MemoryPromises::Publish promise_;
    bool in_memory_;
    VersionId version_ = 0;
  };
  // Begins a publish of at most `bytes` bytes. A publish into memory waits until its bytes fit within the bound and the
  // user's share. If `bytes` exceeds them whole, in_memory() of the result is false. Errc::cancelled.
  Result<Publish> begin_publish(uid_t user, std::uint64_t bytes, bool in_memory, const Cancelled& cancelled);

  // Waits until the version is on the disk or removed. Errc::absent: the version was lost. Errc::cancelled.
  Status wait_for(VersionId version, const Cancelled& cancelled);
  FlushStatus status();

 private:
  struct Waiting {
    VersionRow row;
    std::uint64_t bytes = 0;  // unsynced bytes
  };
  Result<std::vector<Waiting>> scan();
  void show(const std::vector<Waiting>& waiting);
  Result<Worker::Pause> round();
  Status flush(const std::vector<Waiting>& waiting);
  Status pace();
  void end_publish(MemoryPromises::Publish promise, VersionId version);
  Result<bool> is_in_memory(VersionId version);

  Store& store_;
  MemoryVersions& memory_;
  Registry& registry_;
  const std::string node_;
  std::mutex mutex_;
  std::condition_variable changed_;
  MemoryPromises promises_;  // guarded by mutex_, as the three below
  Deadline holds_again_{};   // publishes do not hold up a piece earlier
  std::uint64_t fresh_ = 0;  // bytes of publishes that ended after the last scan began
  FlushStatus status_;       // of the last scan, updated by each flushed version
  Worker worker_;
};

}  // namespace weft
