// A directory with an empty index that goes with the object: what a rebuild fills, and fsck compares with.
#pragma once

#include <memory>
#include <string>

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
  Status close();  // syncs; the files stay until the end

 private:
  explicit ScratchIndex(SafePath dir) : dir_(std::move(dir)) {}
  SafePath dir_;
  std::unique_ptr<Env> env_;
};

// Of rebuilds that died. Under the writer lock.
Status remove_stale_scratch(const SafePath& index_dir);

}  // namespace weft
