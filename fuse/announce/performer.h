// Performs announcements through the mount. One thread, which the words name.
#pragma once

#include <sys/types.h>

#include <string>

#include "fuse/announce/plan.h"
#include "fuse/kernel/announcing.h"
#include "weft/result.h"

namespace weft {

class Performer {
 public:
  // `directory`: of the mount, whose files have this device. `words` outlive this.
  Performer(std::string directory, dev_t device, AnnounceWords& words)
      : models_(std::move(directory) + "/models"), device_(device), words_(words) {}

  // What is not so any more is passed over. Errc::not_found: the mount is no longer there. Keeps nothing open, so that
  // the mount can be unmounted in between.
  Status perform(const Announcement& announcement);

 private:
  int act(int directory, const Announcement& announcement);
  int change(int directory, const Announcement& announcement);

  const std::string models_;
  const dev_t device_;
  AnnounceWords& words_;
};

}  // namespace weft
