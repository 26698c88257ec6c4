// Performs announcements through the mount. For the one thread whose pid AnnounceWords holds.
#pragma once

#include <sys/types.h>

#include <string>

#include "fuse/announce/plan.h"
#include "fuse/kernel/announcing.h"
#include "weft/result.h"

namespace weft {

class Performer {
 public:
  // `directory` is the mount point, `device` the device number of its files. `words` outlive this.
  Performer(std::string directory, dev_t device, AnnounceWords& words)
      : mount_(std::move(directory)), device_(device), words_(words) {}

  // Skips an announcement that is obsolete or already visible. Errc::not_found: the mount is gone. Keeps no file open
  // between calls, so that the mount can be unmounted.
  Status perform(const Announcement& announcement);

 private:
  int act(int directory, const Announcement& announcement);
  int change(int directory, const Announcement& announcement);

  const std::string mount_;
  const dev_t device_;
  AnnounceWords& words_;
};

}  // namespace weft
