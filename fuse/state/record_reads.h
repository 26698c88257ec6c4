// Page faults inside a record of a mapped file. The kernel asks for one page. The server reads the whole record, and
// stores its other pages in the page cache before it replies, so that they cause no fault.
//
// Storing a page waits if the page is locked. A page is locked while a READ of it waits for its reply, and that READ
// may still be queued. The rule that prevents a deadlock:
//  · one thread at a time stores a record; a READ within a record that is being stored is answered plainly;
//  · a plain answer never stores, so it waits for no page;
//  · storing threads are far fewer than serving threads, so one is always left for plain answers.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "base/mutex.h"
#include "fuse/state/kernel_cache.h"
#include "fuse/state/node_id.h"
#include "weft/content.h"

namespace weft {

// Any thread.
class RecordReads {
 public:
  static constexpr std::size_t kStorersMax = 32;          // concurrent records
  static constexpr std::uint64_t kAskedMax = 16U << 10U;  // bytes; a larger READ comes from a sequential reader

  // The right of this thread to store a record, while it lives.
  class Turn {
   public:
    Turn(RecordReads& reads, std::pair<NodeId, std::uint64_t> key) : reads_(&reads), key_(key) {}
    Turn(Turn&& other) noexcept : reads_(std::exchange(other.reads_, nullptr)), key_(std::move(other.key_)) {}
    Turn& operator=(Turn&&) = delete;
    ~Turn() {
      if (reads_ != nullptr) reads_->end(key_);
    }

   private:
    RecordReads* reads_;
    std::pair<NodeId, std::uint64_t> key_;
  };

  // Returns nullopt if another thread stores this record, or if kStorersMax do. The READ is then answered plainly.
  std::optional<Turn> begin(NodeId node, Range record);

  // Stores the bytes of a file from `offset` on in the kernel's page cache. If the kernel refuses that, begin() returns
  // nothing any more. Returns false only at the first refusal: the caller then has files opened in another way.
  bool store(KernelCache& cache, NodeId node, std::uint64_t offset, std::span<const std::byte> bytes);
  bool works() const { return works_.load(std::memory_order_relaxed); }

 private:
  void end(const std::pair<NodeId, std::uint64_t>& key);

  std::atomic<bool> works_{true};
  Mutex mutex_;
  std::set<std::pair<NodeId, std::uint64_t>> storing_ WEFT_GUARDED_BY(mutex_);  // nodes and record offsets
};

}  // namespace weft
