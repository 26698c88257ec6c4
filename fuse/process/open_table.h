// The open handles, in memory that outlives the server. A new server continues with the same backing ids, and a request
// that the kernel resends has no effect if the old server had carried it out. A handle is the number of the OPEN
// request that made it, which the kernel never reuses on a mount. The table stays readable if a server is killed
// between any two instructions. One thread at a time.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "weft/programs/vfs.h"

namespace weft {

enum class ReadWay : std::uint8_t {
  cached,       // served by us, kept in the page cache
  direct,       // served by us, never kept
  passthrough,  // read by the kernel from backing_id
  straight,     // served by us into the reader's memory; mapped pages are kept in the page cache
};

struct OpenRecord {
  std::uint64_t handle = 0;
  Ino ino = 0;
  ReadWay way = ReadWay::cached;
  std::int32_t backing_id = 0;
  FileVersions versions{};
  uid_t user = 0;  // the opener of a draft
};

// The place of a stream's reader: offset `offset` of the open file corresponds to `position` of the stream.
struct StreamPlace {
  std::uint64_t offset = 0;
  std::uint64_t position = 0;
};

// A StreamPlace in shared memory. Its offset is kNoPlace while it is being written.
struct StreamSlot {
  static constexpr std::uint64_t kNoPlace = UINT64_MAX;
  std::atomic<std::uint64_t> offset, position;
};

// A record in shared memory. Zero bytes are a free slot.
struct OpenSlot {
  std::atomic<std::uint32_t> state;  // SlotState; written last when the slot is filled, first when it is freed
  ReadWay way;
  std::int32_t backing_id;
  uid_t user;
  std::uint64_t handle;
  Ino ino;
  FileVersions versions;
  // For a stream: the place of the last read, which the kernel may resend, and that of the next read. And the kernel's
  // poll handle if the file is polled, else 0.
  std::array<StreamSlot, 2> places;
  std::atomic<std::uint64_t> poll_handle;
};
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

// The head of the table, in shared memory. Zero bytes are an empty table.
struct OpenTableHead {
  std::atomic<std::uint32_t> slots_used;          // all slots from here on are free
  std::atomic<std::int32_t> backing_id_recorded;  // every id up to this number is recorded or closed
};

class OpenTable {
 public:
  // Both outlive this; `slots` starts at a page boundary. Takes over the table that is there.
  OpenTable(OpenTableHead& head, std::span<OpenSlot> slots);

  std::vector<OpenRecord> records() const;  // of open handles
  std::size_t size() const { return places_.size(); }

  // False if the table is full. The handle must not be in the table.
  [[nodiscard]] bool add(const OpenRecord& record);
  std::optional<OpenRecord> find(std::uint64_t handle) const;
  void remove(std::uint64_t handle);

  // For an open handle of a stream. place() returns the last place at or before `offset`; nothing before the first
  // set_place(). set_place() keeps the place whose offset is `read_at`, the offset of the read just answered.
  std::optional<StreamPlace> place(std::uint64_t handle, std::uint64_t offset = StreamSlot::kNoPlace - 1) const;
  void set_place(std::uint64_t handle, std::uint64_t read_at, const StreamPlace& place);
  void set_poll_handle(std::uint64_t handle, std::uint64_t poll_handle);
  std::uint64_t poll_handle(std::uint64_t handle) const;

  // Removes in two steps the last handle of an inode, whose backing id is closed between them: retire() removes the
  // handle, finish() frees the slot. Handles that a killed server had retired are in retired() of the next one.
  struct Retired {
    std::uint32_t slot;
    std::int32_t backing_id;
  };
  Retired retire(std::uint64_t handle);  // the handle must be in the table
  void finish(const Retired& retired);
  std::vector<Retired> retired() const;

  // Backing ids are assigned in ascending order. All ids up to recorded_up_to() are recorded or closed.
  std::int32_t recorded_up_to() const { return head_.backing_id_recorded.load(std::memory_order_relaxed); }
  void record_up_to(std::int32_t backing_id) { head_.backing_id_recorded.store(backing_id, std::memory_order_relaxed); }

 private:
  void release_slot(std::uint32_t slot);
  std::optional<std::uint32_t> free_slot();
  OpenRecord record_at(std::uint32_t slot) const;

  OpenTableHead& head_;
  std::span<OpenSlot> slots_;
  std::vector<std::uint32_t> free_;                          // free slots below slots_used
  std::unordered_map<std::uint64_t, std::uint32_t> places_;  // handle -> slot
};

}  // namespace weft
