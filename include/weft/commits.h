// The commits of a store, as a watcher sees them (store/history.cc).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weft/store_rows.h"

namespace weft {

// A commit of the journal, as far as it tells what changed.
struct Commit {
  enum class Kind : std::uint8_t { publish, tags, removal, adoption };
  Kind kind = Kind::publish;
  std::string model;
  std::uint64_t number = 0;  // of the version that came or went
  std::vector<Ino> tags;     // links that were set, moved or deleted
  LocalRow local;            // publish; adoption, which gives the version its content and its views' numbers
  bool bare = false;         // publish
};

// Tells of commits by any process of this machine. For one thread.
class CommitWatch {
 public:
  virtual ~CommitWatch() = default;
  virtual int fd() const = 0;  // readable once somebody may have committed
  virtual void clear() = 0;    // before one looks at what was committed
};

}  // namespace weft
