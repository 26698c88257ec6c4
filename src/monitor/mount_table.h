// The figures of the mounts on a node, as their servers report them (weft/programs/mount_figures.h). Any user may
// report, so the table bounds the mounts, of each user too, and the figures are under the user's id. Any thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/time_source.h"
#include "weft/programs/mount_figures.h"

namespace weft {

class MountTable {
 public:
  static constexpr std::chrono::seconds kKept{30};  // after a report; a mount reports every few seconds

  // `time` outlives this.
  explicit MountTable(const TimeSource& time = steady_time()) : time_(time) {}

  // Replaces the earlier report of the same mount. A mount beyond limits::kMountsMax or limits::kMountsOfUserMax is
  // ignored.
  void report(uid_t user, MountFigures figures);

  struct Mount {
    uid_t user = 0;
    MountFigures figures;
  };
  // Returns the mounts that have reported lately. The mounts of one user at one directory, in several mount
  // namespaces or one after the other, are one.
  std::vector<Mount> mounts() const;

 private:
  using Key = std::pair<uid_t, std::string>;  // with the id of the mount
  struct Entry {
    Deadline until;
    MountFigures figures;
  };
  void forget_old() WEFT_REQUIRES(mutex_);

  const TimeSource& time_;
  mutable Mutex mutex_;
  std::map<Key, Entry> entries_ WEFT_GUARDED_BY(mutex_);
};

}  // namespace weft
