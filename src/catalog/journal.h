// The journal: records that the writer appends and makes durable before the index commits, except changes that a
// registry would send again (store/parts/shown_commits.cc). It has two copies, so that a damaged record can be
// repaired:
//   <n>.log    the records, one after the other
//   <n>.copy   two blocks of 4096 bytes, each with a mark; then the same bytes again
// A mark records the end of the journal and the counters at that time. It becomes durable together with the copy,
// before the index commits. A journal that ends before its mark has lost its tail, and new numbers continue after the
// mark's. A record beyond both the index and the last mark belongs to a commit that was never acknowledged, and is
// truncated.
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
inline constexpr std::uint64_t kMarksBytes = 2 * kMarkBlock;  // header of the .copy; the records follow

struct JournaledEvent {
  Event event;
  std::uint64_t begin = 0;  // offsets of its record
  std::uint64_t end = 0;
};

// The state of the journal after a given offset.
struct JournalState {
  std::vector<Range> gaps;          // damaged in both copies, with intact records after them
  std::vector<std::string> damage;  // messages: records damaged in one copy and intact in the other
  std::uint64_t end = 0;            // end of the last intact record
  std::uint64_t size = 0;           // size of the longer copy
};
struct JournalTail : JournalState {
  std::vector<JournaledEvent> events;
};

// Returns `failure` with the remark that a replay may still apply the commit.
Error not_known(const Error& failure);

// Threads: the caller holds the writer lock, or reads only bytes below journal_end of a snapshot's counters.
class Journal {
 public:
  explicit Journal(const SafePath& store_path);

  Status create();
  Result<std::uint64_t> size() const;  // size of the .log
  // Reads from `begin` to `end` or the end of the files, and passes each record to `visit`, in order, until that fails.
  using Visit = std::function<Status(JournaledEvent)>;
  Result<JournalState> each(std::uint64_t begin, std::uint64_t end, const Visit& visit) const;
  // Like each(), but returns all records in memory: for a short tail.
  Result<JournalTail> read(std::uint64_t begin, std::uint64_t end = UINT64_MAX) const;
  // Returns the counters of the last mark; nothing if both marks are lost or damaged.
  Result<std::optional<Counters>> mark() const;
  // Appends a record at counters.journal_end - record.size(), the end of the intact records, and syncs. After an error
  // no writer replays the record, unless the error is not_known().
  Status append(std::span<const std::byte> record, const Counters& counters) const;
  // append() in two steps. write() writes to the .log, where the record survives a crash of this process. flush()
  // makes the records of the .log from `begin` on durable in both copies, and can be retried after an error.
  Status write(std::span<const std::byte> record, const Counters& counters) const;
  Status flush(std::uint64_t begin, const Counters& counters) const;
  Status truncate(std::uint64_t size) const;
  // Repairs each copy from the other, record by record, up to `end`, and writes `counters` to both marks. For a
  // rebuild, and for a .log that lost its end.
  Status mend(std::uint64_t end, const Counters& counters) const;
  const SafePath& path() const { return path_; }

 private:
  Status fill_copy(int copy, std::uint64_t end) const;
  Status write_copy(std::uint64_t at, std::span<const std::byte> record, const Counters& counters, bool& marked) const;

  SafePath dir_;
  SafePath path_;       // the .log
  SafePath copy_path_;  // the .copy
};

}  // namespace weft
