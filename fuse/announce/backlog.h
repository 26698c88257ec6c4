// Which of many events are announced: those that the last state of each name comes from. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "events/event.h"

namespace weft {

struct AnnouncedChange {
  ModelEvent event;
  std::uint64_t first = 0;  // publish: the oldest version of the model that is announced by this change
};

// All of them.
std::vector<AnnouncedChange> each_change_of(const std::vector<ModelEvent>& events);

// In their order: each model's newest publish, the last change of each tag, and each removal of a version that was
// there before these events. A version that came and went, and one that a newer one followed, are left out.
std::vector<AnnouncedChange> last_changes_of(const std::vector<ModelEvent>& events);

}  // namespace weft
