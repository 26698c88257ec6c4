// The bytes that publishes may put into memory, by user, and which of them still hold up a flush. A user's share covers
// what the running publishes of the user may leave in memory and what their versions have left there, until these are
// on the disk. So no user keeps others from publishing into memory. One thread at a time.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <vector>

#include "base/time_source.h"
#include "base/user_shares.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

// Flushes wait for a publish in its first minute only: a later one may wait for files that never come.
inline constexpr std::chrono::seconds kHoldsFlush{60};

class MemoryPromises {
 public:
  // `own` is the daemon's user. `time` outlives this.
  MemoryPromises(std::uint64_t bytes_max, uid_t own, const TimeSource& time = steady_time());

  struct Running {
    Deadline begun;
    Deadline ends;            // of the promise
    std::uint64_t bytes = 0;  // promised; 0: none, or it has ended
    bool lapsed = false;
    bool committing = false;
    std::shared_ptr<void> share{};
  };
  using Publish = std::list<Running>::iterator;

  void set_max(std::uint64_t bytes_max) { bytes_max_ = bytes_max; }
  // The most that a publish of this user may put into memory.
  std::uint64_t most_for(uid_t user) const { return shares_.most_for(user); }
  // Begins a publish that puts at most `bytes` into memory. end() if they do not fit now, beside `taken` bytes that are
  // there already. Each other result needs one finish().
  Publish begin(uid_t user, std::uint64_t bytes, std::uint64_t taken);
  Publish end() { return running_.end(); }
  // A promise ends after a time in which any disk would have given its bytes, since a reader of files that never answer
  // cannot be stopped. False: it has ended, and the publish must not commit.
  bool lasts(Publish publish);
  // Call before the version is committed: from then on the promise does not end. False as lasts().
  bool commit(Publish publish);
  // Ends a publish of `version`, 0 if it failed. Returns the bytes that it may have left in memory.
  std::uint64_t finish(Publish publish, VersionId version);
  // True if a publish has begun within kHoldsFlush.
  bool hold_flush() const;

  // Returns the versions that count for their user. The caller erases a version that is on the disk, or gone.
  std::vector<VersionId> versions() const;
  void erase(VersionId version) { kept_.erase(version); }

 private:
  std::uint64_t promised();

  std::uint64_t bytes_max_;
  const TimeSource& time_;
  UserShares shares_;
  std::list<Running> running_;
  std::map<VersionId, std::shared_ptr<void>> kept_;
};

}  // namespace weft
