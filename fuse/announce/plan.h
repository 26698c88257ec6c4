// Turns events into announcements. Pure except for reads of the store.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "events/event.h"
#include "fuse/kernel/announcing.h"
#include "weft/result.h"
#include "weft/store/store.h"

namespace weft {

// One change of a directory below models/ or datasets/.
struct Announcement {
  using Kind = Announcing;
  Kind kind = Kind::nothing;
  std::string directory;  // relative to the mount point: "models", "datasets/org"
  std::string name;
  bool operator==(const Announcement&) const = default;
};

// More events than this are a backlog: the mount was away, or the node has just joined the cluster. Only the last
// change of each name is announced then (backlog.h).
inline constexpr std::size_t kAnnouncedEachMax = 256;

// Rows per page when the planner looks for the oldest model of a namespace.
inline constexpr std::size_t kAnnouncedPageRows = 256;

// Returns the announcements in the order in which to perform them: a version before its tags, `latest` last. Fails if
// reading the store fails.
Result<std::vector<Announcement>> announcements_of(Store& store, const std::vector<ModelEvent>& events);

}  // namespace weft
