// The journal: records, appended by the writer and durable before the index commits, but for what a registry tells
// again (settle.cc). It is kept twice, so that a damaged record is not a lost one:
//   <n>.log    the records, one after the other
//   <n>.copy   two blocks of 4096 bytes, each with a mark; then the same bytes again
// A mark says how far the journal was whole and what numbers were given by then. It is made durable together with the
// copy, before the index commits: a journal that ends earlier has lost its tail, and numbers go on after the mark. A
// record behind both the index and the last mark is of a commit that was never acknowledged, and is cut off.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "diskformat/events.h"
#include "os/safe_path.h"
#include "os/sys.h"
#include "weft/result.h"

namespace weft {

inline constexpr std::uint64_t kMarkBlock = 4096;
inline constexpr std::uint64_t kMarksBytes = 2 * kMarkBlock;  // of the .copy; the records follow

struct JournaledEvent {
  Event event;
  std::uint64_t begin = 0;  // of its record
  std::uint64_t end = 0;
};

// The state of the bytes behind a given position.
struct JournalState {
  std::vector<Range> gaps;          // bytes that are no record in either copy, with records behind them
  std::vector<std::string> damage;  // of one copy, which the other makes good
  std::uint64_t end = 0;            // where the last whole record ends; what follows is not whole
  std::uint64_t size = 0;           // of the longer copy
};
struct JournalTail : JournalState {
  std::vector<JournaledEvent> events;
};

// The error of a commit that may be replayed all the same: it says so.
Error not_known(const Error& failure);

// Threads: under the writer lock, or of bytes that a snapshot's counters promise.
class Journal {
 public:
  explicit Journal(const SafePath& store_path);

  Status create();
  Result<std::uint64_t> size() const;  // of the .log
  // Reads from `begin` to `end` or the end of the files, and gives each record to `visit`, in order, until that fails.
  using Visit = std::function<Status(JournaledEvent)>;
  Result<JournalState> each(std::uint64_t begin, std::uint64_t end, const Visit& visit) const;
  // The same, with all records in memory: for a short tail.
  Result<JournalTail> read(std::uint64_t begin, std::uint64_t end = UINT64_MAX) const;
  // The last mark, as counters; none where both are lost or damaged.
  Result<std::optional<Counters>> mark() const;
  // Appends at counters.journal_end - record.size(), the end of what is whole, and syncs. When it fails no writer
  // replays the record, or the error is not_known().
  Status append(std::span<const std::byte> record, const Counters& counters) const;
  // The same in two steps: into the .log, where it outlives this process; then what is in the .log from `begin` on is
  // made durable, in both copies. The second may be done again until it goes well.
  Status write(std::span<const std::byte> record, const Counters& counters) const;
  Status settle(std::uint64_t begin, const Counters& counters) const;
  Status truncate(std::uint64_t size) const;
  // Makes the two copies equal up to `end`, record for record, and the last mark that of `counters`. For fsck
  // --rebuild.
  Status mend(std::uint64_t end, const Counters& counters) const;
  const SafePath& path() const { return path_; }

 private:
  Status fill_copy(int copy, std::uint64_t end) const;
  Status write_copy(std::uint64_t at, std::span<const std::byte> record, const Counters& counters, bool& marked) const;

  SafePath dir_;
  SafePath path_;       // of the .log
  SafePath copy_path_;  // of the .copy
};

}  // namespace weft
