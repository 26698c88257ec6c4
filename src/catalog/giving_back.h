// What a removed version held, given back in steps. A small version gives it back with its removal. A large one would
// hold other writers up, so its removal only notes it, and gc takes the steps in batches: until then it is a holder of
// its blobs as it was.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "index/blobs.h"
#include "index/tables.h"
#include "weft/content.h"
#include "weft/result.h"
#include "weft/store_rows.h"
#include "weft/version_content.h"

namespace weft {

// Steps that are taken of one that is not wholly given back; nothing: it is, or was never noted.
Result<std::optional<std::uint64_t>> steps_given_back(Txn& txn, VersionId version);
Status note_given_back(Txn& txn, VersionId version, std::uint64_t steps);

// One step is a blob, the bytes that a file owns, or a tensor's inode, in an order that only the content decides. What
// the index says after some steps does not depend on what was committed between them. One thread.
class GivingBack {
 public:
  GivingBack(VersionId version, const LocalRow& local, const VersionContent& content);

  std::size_t steps() const { return blobs_.size() + files_ + views_.size(); }
  // With the removal: all steps, or none where they are more than limits::kBatchRows.
  std::uint64_t first_steps() const;
  // Takes the steps from `from` to `end` and notes what is left.
  Status take(Txn& txn, std::uint64_t from, std::uint64_t end) const;

 private:
  struct Blob {
    ContentId id;
    std::vector<std::uint32_t> files;  // that have it
  };
  Status let_go(Txn& txn, std::span<const Blob> blobs) const;

  const VersionId version_;
  std::vector<Blob> blobs_;  // each once
  std::size_t files_;
  std::vector<std::pair<Ino, std::uint64_t>> views_;  // with their links, each once
};

}  // namespace weft
