// The renames in new/ that publish, by the threads that rename.
//
// While the request RENAME waits for its reply, the kernel holds both directories of the rename: no other process can
// make, remove, rename or list names there, nor look up one that is not in the kernel's cache. If the directories
// differ, no other process can move anything between directories of this mount. A publish may take minutes. So it runs
// in another request of the same thread, for which the kernel holds nothing:
//
//   RENAME               ESTALE. The kernel lets the directories go, and walks along both paths once more
//   LOOKUP of new/       publishes, then replies. The name is in the kernel's cache, else the LOOKUP would hold the
//   root LOOKUP of the draft  if it is published, a stand-in for it: the kernel renames no name that is not there
//   RENAME               the outcome of the publish
//
// The kernel sends no LOOKUP of new/ if neither path leads through the root of the mount: a program works in new/ or in
// a directory below, or sees a bind mount of it. Then the second RENAME publishes, and the kernel holds the directories
// meanwhile. If other users share them, HeldTime bounds that. So does the first RENAME of a thread without a number,
// which the mount's pid namespace lacks.
//
// Other requests hold a directory for as long as one question to weftd (2 s) or one count of all drafts
// (drafts/draft_space.h) takes.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/mutex.h"
#include "base/time_source.h"
#include "drafts/publisher.h"
#include "weft/deadline.h"
#include "weft/result.h"

namespace weft {

inline constexpr std::uint64_t kPublishesMax = 256;      // at once; each takes a serving thread (fuse/ops/session.cc)
inline constexpr std::chrono::seconds kHeldMax{2};       // for which a user's publish may hold directories of all users
inline constexpr std::chrono::seconds kRenameAgain{10};  // between two requests of a rename; any other is a new rename

struct PublishRename {
  PublishOrder order;             // its request is 0 until the publish begins
  std::optional<Status> outcome;  // of a publish that has ended
};

// Any thread. A thread that renames sends one request at a time.
class PublishRenames {
 public:
  // `time` outlives this.
  explicit PublishRenames(const TimeSource& time = steady_time()) : time_(time) {}

  // RENAME: remembers a rename that is to be published, in place of an earlier one of the thread.
  void ask(PublishOrder order);
  // RENAME number `request`: returns what is known of this rename; nothing if the thread has not asked for it.
  std::optional<PublishRename> asked(const PublishOrder& order, std::uint64_t request) const;
  // LOOKUP number `request` of new/: returns the rename that this thread has asked for, if it is not published yet.
  std::optional<PublishOrder> waiting(std::uint32_t thread, uid_t user, std::uint64_t request) const;
  // LOOKUP of a draft: returns the rename of this thread that has published it.
  std::optional<PublishOrder> published(std::uint32_t thread, uid_t user, Ino dir, const std::string& name) const;

  void begin(const PublishOrder& order);           // the publish begins
  void end(std::uint32_t thread, Status outcome);  // it has ended
  void restore(BegunPublish begun);                // an earlier server began it
  void forget(std::uint32_t thread);               // the thread gets its answer

 private:
  struct Known {
    PublishRename rename;
    Deadline until;  // a later request is of another rename
  };
  const Known* find(std::uint32_t thread, uid_t user) const WEFT_REQUIRES(mutex_);
  void put(PublishRename rename, Deadline until) WEFT_REQUIRES(mutex_);

  const TimeSource& time_;
  mutable Mutex mutex_;
  std::map<std::uint32_t, Known> renames_ WEFT_GUARDED_BY(mutex_);  // by thread
};

// The time for which the publishes of each user hold directories of all users: one publish at once, for kHeldMax at
// most, and for half of the time at most. Any thread.
class HeldTime {
 public:
  struct Hold {
    Deadline begun, until;  // the publish should end at `until`; if it is late, the user's next one has to wait
    Deadline used;          // up to here, earlier publishes have used the user's time
  };

  explicit HeldTime(const TimeSource& time = steady_time()) : time_(time) {}

  // A publish begins; nothing if the user has no time left.
  std::optional<Hold> begin(uid_t user);
  void end(uid_t user, const Hold& hold);

 private:
  const TimeSource& time_;
  Mutex mutex_;
  std::map<uid_t, Deadline> used_ WEFT_GUARDED_BY(mutex_);  // Deadline::max(): a publish of the user runs
};

}  // namespace weft
