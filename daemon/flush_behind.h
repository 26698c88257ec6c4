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
  // `node` is this node's name in the records of lost versions. `bytes_max` bounds the unsynced bytes. `store`,
  // `memory` and `registry` outlive this.
  FlushBehind(Store& store, MemoryVersions& memory, Registry& registry, std::string node, std::uint64_t bytes_max);
  ~FlushBehind();  // waits until the current piece is on the disk

  void set_max(std::uint64_t bytes_max);
  // Call after changes of the registry: they may contain versions of this node that are in memory.
  void wake() { worker_.wake(); }

  // A running publish. While it lives, but only for some seconds, no piece is flushed, so that the publish's own syncs
  // do not wait.
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
    std::uint64_t bytes_;  // most bytes that the publish leaves unsynced
  };
  // Begins a publish of at most `bytes` bytes. A publish into memory waits until its bytes fit within the bound. If
  // `bytes` exceeds the whole bound, in_memory() of the result is false. Errc::cancelled.
  Result<Publish> begin_publish(std::uint64_t bytes, bool in_memory, const Cancelled& cancelled);

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
  void end_publish(std::uint64_t bytes);
  Result<bool> is_in_memory(VersionId version);

  Store& store_;
  MemoryVersions& memory_;
  Registry& registry_;
  const std::string node_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t bytes_max_;     // guarded by mutex_, as the four below
  unsigned publishing_ = 0;     // running publishes
  std::uint64_t promised_ = 0;  // bytes that running publishes may leave unsynced
  std::uint64_t fresh_ = 0;     // bytes of publishes that ended after the last scan began
  FlushStatus status_;          // of the last scan, updated by each flushed version
  Worker worker_;
};

}  // namespace weft
