// The commits of a store, as a watcher sees them (store/reading/history.cc).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weft/store_rows.h"

namespace weft {

// A record of the journal, as a change for followers. Changes of this node alone (pins, repairs, a bare version that
// gets its content) are not commits.
struct Commit {
  // description: message or metrics of the version changed. undelete: a removed version is live again. rename: the
  // model has another name.
  // purge: a removed version is never undeleted, and its content is freed everywhere.
  // in_memory, on_disk: the publisher's report on where the version's bytes are (VersionNote::in_memory).
  enum class Kind : std::uint8_t { publish, tags, removal, in_memory, on_disk, description, undelete, rename, purge };
  struct Tag {
    std::string name;
    std::uint64_t number = 0;  // version that it leads to; 0: the tag is deleted
    bool operator==(const Tag&) const = default;
  };
  Kind kind = Kind::publish;
  std::string model;
  std::uint64_t number = 0;    // of the version; 0 for `tags` and `rename`
  std::vector<Tag> tags;       // tags that were set, moved or deleted; removal: tags that were removed with the version
  std::uint64_t bytes = 0;     // publish: size of the version's files
  std::uint64_t time_ns = 0;   // when the change was made
  std::uint64_t position = 0;  // in the journal, after the record; a reader can continue here
  std::string lost = {};       // removal: as VersionRow::lost
  std::string to = {};         // rename: the new name
  std::string publisher = {};  // publish: as VersionRow::publisher
  Author by = {};              // who published, tagged, removed or purged; empty if it is unknown
};

// A part of the history.
struct CommitBatch {
  std::vector<Commit> commits;  // oldest first; may be empty before the end
  std::uint64_t next = 0;       // position to continue from; at the end, the state's Snapshot::journal_end()
};

// Watches for commits of any process on this machine. One thread.
class CommitWatch {
 public:
  virtual ~CommitWatch() = default;
  virtual int fd() const = 0;  // readable if there may be a new commit
  virtual void clear() = 0;    // call before reading the commits
};

}  // namespace weft
