// Making the index again from packs, manifests and journal.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "store/env.h"
#include "store/journal.h"
#include "store/manifests.h"
#include "store/packs.h"
#include "store/tables.h"
#include "weft/progress.h"
#include "weft/result.h"
#include "weft/store.h"

namespace weft {

// What a new index is made from, and how much of it.
struct RebuildInput {
  const Journal& journal;
  const Manifests& manifests;
  Packs& packs;
  const ContentDecoder& decode;
  std::uint64_t journal_end = UINT64_MAX;
  // fsck, to get what is there: removed versions that are not reaped yet, and the keys and places that blobs have.
  std::function<bool(VersionId)> unreaped;
  std::function<std::optional<FoundBlob>(const ContentId&)> known;
};

// Fills an empty index. What is damaged gets a line in report.problems and is left out; an error is a failure to write.
Status fill_index(Env& env, const RebuildInput& input, Progress& progress, FsckReport& report);

// A directory with an empty index that goes with the object.
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

// As Store::rebuild.
Result<FsckReport> rebuild_store(const std::string& path, const ContentDecoder& decode, Progress& progress);

// index/gc: gc and rebuild hold it exclusively, fsck shared. Taken before the writer lock.
Result<Fd> lock_collector(const std::string& store_path, LockKind kind);

}  // namespace weft
