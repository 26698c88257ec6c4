// Faults inside a record of a mapped file. The kernel asks for one page. The whole record is read at once instead, and
// its other pages are stored in the page cache before the answer, so that they cause no fault.
//
// Storing pages waits for pages that are locked. A page is locked while a READ of it waits for its answer, and that
// READ may still be queued. The rule that keeps this from being a deadlock:
//  · a record is stored by one thread at a time; a READ within a record that is being stored is answered plainly;
//  · a plain answer never stores, so it waits for no page;
//  · those who store are far fewer than the threads that serve, so one is always there for the plain answers.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "fuse/state/kernel_cache.h"
#include "fuse/state/node_id.h"
#include "weft/content.h"

namespace weft {

// Any thread.
class RecordReads {
 public:
  static constexpr std::size_t kStorersMax = 32;          // at once
  static constexpr std::uint64_t kAskedMax = 16U << 10U;  // larger READs come from a reader that reads on

  // A record that is this thread's to store, until it is destroyed.
  class Turn {
   public:
    Turn(RecordReads& reads, std::pair<NodeId, std::uint64_t> key) : reads_(&reads), key_(key) {}
    Turn(Turn&& other) noexcept : reads_(std::exchange(other.reads_, nullptr)), key_(other.key_) {}
    Turn& operator=(Turn&&) = delete;
    ~Turn() {
      if (reads_ != nullptr) reads_->end(key_);
    }

   private:
    RecordReads* reads_;
    std::pair<NodeId, std::uint64_t> key_;
  };

  // None while another thread stores this record, or enough others store: the READ is answered plainly.
  std::optional<Turn> begin(NodeId node, Range record);

  // The bytes of a file from `offset` on become pages of the kernel's. A kernel that refuses this is asked no more:
  // false, once, says that files are to be opened in another way from now on.
  bool store(PageStore& pages, NodeId node, std::uint64_t offset, std::span<const std::byte> bytes);
  bool works() const { return works_.load(std::memory_order_relaxed); }

 private:
  void end(const std::pair<NodeId, std::uint64_t>& key);

  std::atomic<bool> works_{true};
  std::mutex mutex_;
  std::set<std::pair<NodeId, std::uint64_t>> storing_;  // guarded by mutex_; nodes and where the records begin
};

}  // namespace weft
