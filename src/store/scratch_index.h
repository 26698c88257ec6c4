// A directory with an empty index that goes with the object: what a rebuild fills, and fsck compares with.
#pragma once

#include <memory>
#include <string>

#include "store/env.h"
#include "weft/result.h"

namespace weft {

class ScratchIndex {
 public:
  static Result<ScratchIndex> make(const std::string& parent);
  ~ScratchIndex();
  ScratchIndex(ScratchIndex&&) = default;
  ScratchIndex& operator=(ScratchIndex&&) = delete;
  Env& env() { return *env_; }
  const std::string& dir() const { return dir_; }
  Status close();  // syncs; the files stay until the end

 private:
  explicit ScratchIndex(std::string dir) : dir_(std::move(dir)) {}
  std::string dir_;
  std::unique_ptr<Env> env_;
};

// Of rebuilds that died. Under the writer lock.
Status remove_stale_scratch(const std::string& index_dir);

}  // namespace weft
