// A removed version gives back its blobs, owned bytes and links in steps. A small version does so with its removal, and
// gives back the inodes of its tensors when gc reaps it. A large version would delay other writers. So its removal only
// adds a note, and gc takes the steps in batches. Until then the version remains a holder of its blobs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "catalog/apply.h"
#include "catalog/content_references.h"
#include "index/env.h"
#include "weft/content.h"
#include "weft/model/version_content.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

// As a number of steps: all steps except those that release inodes.
inline constexpr std::uint64_t kAllHeld = UINT64_MAX;

// remove_links() subtracts links from a tensor's inode; release_view() subtracts one version, and deletes the inode
// after the last.
Status remove_links(Txn& txn, Ino ino, std::uint64_t links);
Status release_view(Txn& txn, Ino ino);
// Removes the version as a holder of the blobs of these places.
Status let_go(Txn& txn, VersionId version, const ContentReferences& references, std::span<const std::uint32_t> places);
// Erases the rows that this node has of a version whose content is released. True if no version needs its manifest any
// more.
Result<bool> forget_version(Txn& txn, const VersionRow& version, const LocalRow& local);

// The steps that release a removed version's content. One step releases a blob, the owned bytes of a file, or the links
// of a tensor's inode. The last steps release the inodes and require that no reader can open the version. The order
// depends on the content only. The index rows after a step do not depend on commits between the steps. One thread;
// `content` must outlive this object.
class ContentRelease {
 public:
  ContentRelease(VersionId version, const LocalRow& local, const VersionContent& content);

  // The number of all steps, and of the steps before the inodes are released.
  std::uint64_t steps() const { return held_steps() + views_.size(); }
  std::uint64_t held_steps() const { return references_.blob_count() + files_ + views_.size(); }
  // Takes the steps from `from` to `end`.
  Status release(Txn& txn, std::uint64_t from, std::uint64_t end) const;
  // Undoes the steps before `end`, which release no inode: all of them are released. `numbers` has the numbers of the
  // version's blobs by place.
  Status take_back(Txn& txn, std::uint64_t end, std::vector<std::uint64_t> numbers, const PublishInput& input) const;

 private:
  const VersionId version_;
  const ContentReferences references_;
  const std::size_t files_;
  std::vector<std::pair<Ino, std::uint64_t>> views_;  // each distinct inode, with its links
};

}  // namespace weft
