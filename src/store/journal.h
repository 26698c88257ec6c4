// The journal: one file of records, appended by the writer and durable before the index commits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/sys.h"
#include "store/events.h"
#include "weft/result.h"

namespace weft {

// What follows a given position. Threads: under the writer lock, or of bytes that a snapshot's counters promise.
struct JournaledEvent {
  Event event;
  std::uint64_t end = 0;  // of its record
};
struct JournalTail {
  std::vector<JournaledEvent> events;
  std::vector<std::string> problems;  // records that do not verify, with whole ones after them
  std::uint64_t end = 0;              // where the last whole record ends; what follows is not whole
  std::uint64_t size = 0;             // of the file
};

class Journal {
 public:
  explicit Journal(const std::string& store_path)
      : dir_(store_path + "/journal"), path_(dir_ + "/0000000000000001.log") {}

  Status create();
  Result<std::uint64_t> size() const;
  // Reads from `begin` to `end` or the end of the file. Damage between whole records is skipped and told.
  Result<JournalTail> read(std::uint64_t begin, std::uint64_t end = UINT64_MAX) const;
  // Appends at `at`, the end of what is whole, and syncs. When it fails the journal is as before.
  Status append(std::uint64_t at, std::span<const std::byte> record) const;
  Status truncate(std::uint64_t size) const;
  const std::string& path() const { return path_; }

 private:
  std::string dir_;
  std::string path_;
};

}  // namespace weft
