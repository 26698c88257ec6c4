// A temporary directory with an empty index. A rebuild fills it, and fsck compares it with the store's index.
#pragma once

#include <memory>

#include "index/env.h"
#include "os/safe_path.h"
#include "weft/result.h"

namespace weft {

class ScratchIndex {
 public:
  static Result<ScratchIndex> make(const SafePath& parent);
  ~ScratchIndex();
  ScratchIndex(ScratchIndex&&) = default;
  ScratchIndex& operator=(ScratchIndex&&) = delete;
  Env& env() { return *env_; }
  const SafePath& dir() const { return dir_; }
  Status close();  // syncs and closes the index; the files stay until destruction

 private:
  explicit ScratchIndex(SafePath dir) : dir_(std::move(dir)) {}
  SafePath dir_;
  std::unique_ptr<Env> env_;
};

// Removes the directories of dead rebuilds. The caller holds the writer lock.
Status remove_stale_scratch(const SafePath& index_dir);

}  // namespace weft
