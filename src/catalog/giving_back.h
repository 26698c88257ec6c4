// A removed version gives back its blobs, owned bytes and links in steps. A small version does so with its removal, and
// gives back the inodes of its tensors when gc reaps it. A large version would hold up other writers. Its removal only
// notes it, and gc takes the steps in batches. Until then the version remains a holder of its blobs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "catalog/uses.h"
#include "index/env.h"
#include "weft/content.h"
#include "weft/result.h"
#include "weft/store_rows.h"
#include "weft/version_content.h"

namespace weft {

// In place of a number of steps: all, but for those of the inodes.
inline constexpr std::uint64_t kAllHeld = UINT64_MAX;

// Steps that are taken of one that is not wholly given back; nothing: it is, or was never noted.
Result<std::optional<std::uint64_t>> steps_given_back(Txn& txn, VersionId version);
Status note_given_back(Txn& txn, VersionId version, std::uint64_t steps);

// So many entries less show this tensor's inode; one version less has it.
Status remove_links(Txn& txn, Ino ino, std::uint64_t links);
Status release_view(Txn& txn, Ino ino);
// The version holds the blobs of these places no more.
Status let_go(Txn& txn, VersionId version, const ContentUses& uses, std::span<const std::uint32_t> places);

// One step is a blob, the bytes that a file owns, or the links of a tensor's inode; the last ones let the inodes go,
// and are for a version that nobody can open any more. The order is by the content alone, and what the index says after
// some steps does not depend on what was committed between them. One thread; the content stays the caller's.
class GivingBack {
 public:
  GivingBack(VersionId version, const LocalRow& local, const VersionContent& content);

  // All of them, and those before the inodes go.
  std::uint64_t steps() const { return held_steps() + views_.size(); }
  std::uint64_t held_steps() const { return uses_.blob_count() + files_ + views_.size(); }
  // Takes the steps from `from` to `end`.
  Status take(Txn& txn, std::uint64_t from, std::uint64_t end) const;

 private:
  const VersionId version_;
  const ContentUses uses_;
  const std::size_t files_;
  std::vector<std::pair<Ino, std::uint64_t>> views_;  // with their links, each once
};

}  // namespace weft
