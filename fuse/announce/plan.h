// What to perform for events. Pure, but for what is asked of the store.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "events/event.h"
#include "fuse/kernel/announcing.h"
#include "weft/result.h"
#include "weft/store.h"

namespace weft {

// One change of a directory of models/ or datasets/.
struct Announcement {
  using Kind = Announcing;
  Kind kind = Kind::nothing;
  std::string directory;  // of the mount: "models", "datasets/org"
  std::string name;
  bool operator==(const Announcement&) const = default;
};

// More events than these are the backlog of a mount that was away, or of a node that joined: their last changes alone
// are announced (backlog.h).
inline constexpr std::size_t kAnnouncedEachMax = 256;

// Models of a namespace that are read at a time, to find out which of them came first.
inline constexpr std::size_t kAnnouncedPageRows = 256;

// In the order in which they are to be performed: a version comes before its tags, and `latest` last. Errors are those
// of reading the store.
Result<std::vector<Announcement>> announcements_of(Store& store, const std::vector<ModelEvent>& events);

}  // namespace weft
