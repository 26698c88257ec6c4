// Reduces a long list of events to the events that determine the final state of each name. Pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "events/event.h"

namespace weft {

struct AnnouncedChange {
  ModelEvent event;
  std::uint64_t first = 0;  // publish: the oldest version of the model that this change announces
};

// Returns one change per event.
std::vector<AnnouncedChange> each_change_of(const std::vector<ModelEvent>& events);

// Returns, in the order of the events: the newest publish of each model, the last change of each tag, and each removal
// of a version that existed before these events. A version that the events both publish and remove is left out, and so
// is a version that a newer one of its model follows.
std::vector<AnnouncedChange> last_changes_of(const std::vector<ModelEvent>& events);

}  // namespace weft
