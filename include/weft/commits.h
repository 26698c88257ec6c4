// The commits of a store, as a watcher sees them (store/history.cc).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weft {

// A record of the journal, as far as it tells a follower what changed. What only this node does (pins, repairs, a bare
// version that gets its content) is none.
struct Commit {
  // in_memory, on_disk: of the version's bytes, as its publisher says (VersionNote::in_memory).
  enum class Kind : std::uint8_t { publish, tags, removal, in_memory, on_disk };
  struct Tag {
    std::string name;
    std::uint64_t number = 0;  // of the version that it leads to; 0: the tag is deleted
    bool operator==(const Tag&) const = default;
  };
  Kind kind = Kind::publish;
  std::string model;
  std::uint64_t number = 0;    // of the version; not of tags
  std::vector<Tag> tags;       // that were set, moved or deleted; removal: that went with the version
  std::uint64_t bytes = 0;     // publish: of the version's files
  std::uint64_t time_ns = 0;   // when its maker made it
  std::uint64_t position = 0;  // of the journal behind it: a place to read on from
  std::string lost = {};       // removal: as VersionRow::lost
};

// A part of the history.
struct CommitBatch {
  std::vector<Commit> commits;  // oldest first; there may be none before the end
  std::uint64_t next = 0;       // where to read on; the state's Snapshot::journal_end() at the end
};

// Tells of commits by any process of this machine. For one thread.
class CommitWatch {
 public:
  virtual ~CommitWatch() = default;
  virtual int fd() const = 0;  // readable once somebody may have committed
  virtual void clear() = 0;    // before one looks at what was committed
};

}  // namespace weft
