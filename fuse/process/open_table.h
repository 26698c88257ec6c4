// Which handles are open, in memory that outlives the server: a new server goes on with the same backing ids, and the
// kernel's second sending of a request that the old one had carried out already changes nothing. A handle is the
// number of the OPEN request that made it, which the kernel never uses twice on one mount.
// Killed between any two instructions, a server leaves a table that can be read. One thread at a time.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "weft/vfs.h"

namespace weft {

enum class ReadWay : std::uint8_t {
  cached,       // through us, kept in the page cache
  direct,       // through us, never kept
  passthrough,  // by the kernel, from backing_id
  straight,     // through us, into the reader's own memory; what is mapped is kept in the page cache
};

struct OpenRecord {
  std::uint64_t handle = 0;
  Ino ino = 0;
  ReadWay way = ReadWay::cached;
  std::int32_t backing_id = 0;
  FileVersions versions{};
};

// Where a reader of a stream is: from `offset` of the open file on, it reads what the stream has behind `position`.
struct StreamPlace {
  std::uint64_t offset = 0;
  std::uint64_t position = 0;
};

// The same in shared memory. A place is written while its offset says kNoPlace.
struct StreamSlot {
  static constexpr std::uint64_t kNoPlace = UINT64_MAX;
  std::atomic<std::uint64_t> offset, position;
};

// One record as it lies in shared memory. Zero bytes are a free slot.
struct OpenSlot {
  std::atomic<std::uint32_t> state;  // SlotState; written last when a slot is filled, first when it is freed
  ReadWay way;
  std::int32_t backing_id;
  std::uint64_t handle;
  Ino ino;
  FileVersions versions;
  // Of a stream: the place of the last read, which the kernel may send again, and that of the next. And what the kernel
  // calls the file by if somebody polls it, else 0.
  std::array<StreamSlot, 2> places;
  std::atomic<std::uint64_t> poll_handle;
};
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

// The table's own words, in shared memory too. Zero bytes are an empty table.
struct OpenTableHead {
  std::atomic<std::uint32_t> slots_used;         // no slot from here on is in use
  std::atomic<std::int32_t> backing_id_settled;  // ids up to here are in the table, or closed
};

class OpenTable {
 public:
  // Both outlive this; `slots` starts at a page of its own. Takes over what is in there.
  OpenTable(OpenTableHead& head, std::span<OpenSlot> slots);

  std::vector<OpenRecord> records() const;  // of open handles
  std::size_t size() const { return places_.size(); }

  // False when the table is full. No handle is added twice.
  [[nodiscard]] bool add(const OpenRecord& record);
  std::optional<OpenRecord> find(std::uint64_t handle) const;
  void remove(std::uint64_t handle);

  // Of an open handle that reads a stream. place(): the last place that is not behind `offset`; none before the first
  // set_place(). set_place() keeps the place with the offset `read_at`, at which the reader was answered.
  std::optional<StreamPlace> place(std::uint64_t handle, std::uint64_t offset = StreamSlot::kNoPlace - 1) const;
  void set_place(std::uint64_t handle, std::uint64_t read_at, const StreamPlace& place);
  void set_poll_handle(std::uint64_t handle, std::uint64_t poll_handle);
  std::uint64_t poll_handle(std::uint64_t handle) const;

  // Two steps for a handle that was the last of its inode, with closing its backing id between them: retire() makes it
  // unknown, finish() forgets its id. What a killed server had retired is in retired() of the next.
  struct Retired {
    std::uint32_t slot;
    std::int32_t backing_id;
  };
  Retired retire(std::uint64_t handle);  // which is there
  void finish(const Retired& retired);
  std::vector<Retired> retired() const;

  // Backing ids come in rising order; up to which one nothing is left to record or close.
  std::int32_t settled() const { return head_.backing_id_settled.load(std::memory_order_relaxed); }
  void settle(std::int32_t backing_id) { head_.backing_id_settled.store(backing_id, std::memory_order_relaxed); }

 private:
  void release_slot(std::uint32_t slot);
  std::optional<std::uint32_t> free_slot();
  OpenRecord record_at(std::uint32_t slot) const;

  OpenTableHead& head_;
  std::span<OpenSlot> slots_;
  std::vector<std::uint32_t> free_;                          // below slots_used
  std::unordered_map<std::uint64_t, std::uint32_t> places_;  // handle -> slot
};

}  // namespace weft
