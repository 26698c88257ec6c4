// The state that every operation needs: the tree, the options and the open files. One per server process.
#pragma once

#define FUSE_USE_VERSION 314

#include <fuse_lowlevel.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "base/mutex.h"
#include "base/user_shares.h"
#include "drafts/checkpoints.h"
#include "drafts/draft_space.h"
#include "drafts/draft_tree.h"
#include "drafts/publisher.h"
#include "fuse/kernel/passthrough.h"
#include "fuse/process/options.h"
#include "fuse/process/shared_state.h"
#include "fuse/state/event_feed.h"
#include "fuse/state/listings.h"
#include "fuse/state/notifier.h"
#include "fuse/state/open_files.h"
#include "fuse/state/publish_renames.h"
#include "fuse/state/record_reads.h"
#include "weft/programs/vfs.h"
#include "weft/store/publish.h"

namespace weft {
// The tree position (weft/programs/vfs.h) at which some work was last done for each directory. Only a new position
// requires the work again. Any thread.
class DonePositions {
 public:
  bool is_done(Ino dir, std::uint64_t position) const {
    const MutexLock lock(mutex_);
    const auto found = positions_.find(dir);
    return found != positions_.end() && found->second == position;
  }
  void done(Ino dir, std::uint64_t position) {
    const MutexLock lock(mutex_);
    positions_[dir] = position;
  }

 private:
  mutable Mutex mutex_;
  std::unordered_map<Ino, std::uint64_t> positions_ WEFT_GUARDED_BY(mutex_);
};

inline constexpr unsigned kReadAheadKilobytes = 4096;  // readahead of the mount: four READ requests

struct Server {
  Server(Vfs& tree, PublishRights& publish_rights, std::unique_ptr<DraftTree> draft_tree,
         const PublisherOptions& publishing, const MountOptions& mount_options, SharedState& shared_state)
      : vfs(tree), rights(publish_rights), drafts(std::move(draft_tree)), options(mount_options), shared(shared_state) {
    if (!drafts) return;
    draft_space.emplace(*drafts, mount_options.drafts_max);
    publisher.emplace(*drafts, publishing);
    checkpoints.emplace(*drafts, *publisher);
    for (BegunPublish& begun : publisher->begun_before()) publish_renames.restore(std::move(begun));
  }

  Vfs& vfs;
  PublishRights& rights;
  const std::unique_ptr<DraftTree> drafts;  // null if the mount does not publish
  std::optional<DraftSpace> draft_space{};
  std::optional<DraftPublisher> publisher{};
  std::optional<Checkpoints> checkpoints{};
  PublishRenames publish_renames;
  HeldTime held_time;
  UserShares publishes{[] { return UserShares::bound_of(kPublishesMax); }, own_user()};  // that run
  const MountOptions& options;
  SharedState& shared;
  Passthrough passthrough;
  RequestLog requests{shared.head().requests};
  InitExchange exchange{shared.head().init, passthrough, requests};
  KnownRights known_rights{shared.head().rights};
  OpenTable open_table{shared.head().opens, shared.slots()};
  OpenFiles open_files{vfs, drafts.get(), passthrough, open_table, shared.head().init};
  EventFeed events{vfs, open_files, requests};
  Listings listings;
  DonePositions namespaces{};                   // namespaces of models/ were created in these directories of new/
  std::unique_ptr<KernelCache> kernel_cache{};  // of the session; null when it does not serve
  Notifier notifier;
  RecordReads record_reads;
  int device = -1;  // /dev/fuse of this mount
};

// The table of operations (fuse/ops).
extern const fuse_lowlevel_ops kOperations;

}  // namespace weft
