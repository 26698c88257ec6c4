#include "fuse/announce/backlog.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace weft {
namespace {

using EventKind = ModelEvent::Kind;

// The names of one model in the events walked so far. The walk goes from the last event to the first.
struct Names {
  std::set<std::uint64_t> made;     // versions that any of the events publishes, filled in before the walk
  std::set<std::uint64_t> removed;  // versions whose removal the walk has met
  std::set<std::uint64_t> back;     // versions whose undelete it has met
  std::set<std::string> tags;
  bool published = false;
};

// Returns the tags of the event that no later event changes.
std::vector<std::string> last_tags(Names& names, const ModelEvent& event) {
  std::vector<std::string> last;
  for (const std::string& tag : event.tags)
    if (names.tags.insert(tag).second) last.push_back(tag);
  return last;
}

// Collects the last changes. Expects events in reverse order.
class LastChanges {
 public:
  explicit LastChanges(const std::vector<ModelEvent>& events) {
    for (const ModelEvent& event : events)
      if (event.kind == EventKind::publish) models_[event.model].made.insert(event.version);
  }
  void add(const ModelEvent& event) {
    Names& names = models_[event.model];
    switch (event.kind) {
      case EventKind::publish:
        return published(names, event);
      case EventKind::tag:
        return tagged(names, event, event.version);
      case EventKind::undelete:
        return undeleted(names, event);
      case EventKind::remove:
      case EventKind::lost:
        return removed(names, event);
      case EventKind::rename:
      case EventKind::restart:
        return changes_.push_back({event, 0});
      case EventKind::note:
      case EventKind::memory:
      case EventKind::durable:
      case EventKind::purge:
        return;
    }
  }
  std::vector<AnnouncedChange> in_order() && {
    std::ranges::reverse(changes_);
    return std::move(changes_);
  }

 private:
  void published(Names& names, const ModelEvent& event) {
    const bool there = !names.removed.contains(event.version);
    if (!there || names.published) return tagged(names, event, there ? event.version : 0);
    names.published = true;
    AnnouncedChange& change = changes_.emplace_back(AnnouncedChange{event, *names.made.begin()});
    change.event.tags = last_tags(names, event);
  }
  // Events of its tags follow the undelete.
  void undeleted(Names& names, const ModelEvent& event) {
    if (names.removed.contains(event.version) || !names.back.insert(event.version).second) return;
    if (!names.made.contains(event.version)) changes_.push_back({event, 0});
  }
  // A removal deletes the version's tags. If these events also published the version or brought it back, only that is
  // announced: the tags may have led to an older version before.
  void removed(Names& names, const ModelEvent& event) {
    if (names.back.contains(event.version)) return tagged(names, event, 0);
    names.removed.insert(event.version);
    if (names.made.contains(event.version)) return tagged(names, event, 0);
    AnnouncedChange& change = changes_.emplace_back(AnnouncedChange{event, 0});
    change.event.tags = last_tags(names, event);
  }
  // `version`: target of the tags; 0 if the tags were deleted.
  void tagged(Names& names, const ModelEvent& event, std::uint64_t version) {
    std::vector<std::string> tags = last_tags(names, event);
    if (tags.empty()) return;
    AnnouncedChange& change = changes_.emplace_back(AnnouncedChange{event, 0});
    change.event.kind = EventKind::tag;
    change.event.version = version;
    change.event.tags = std::move(tags);
  }

  std::map<std::string, Names> models_;
  std::vector<AnnouncedChange> changes_;
};

}  // namespace

std::vector<AnnouncedChange> each_change_of(const std::vector<ModelEvent>& events) {
  std::vector<AnnouncedChange> changes;
  changes.reserve(events.size());
  for (const ModelEvent& event : events) changes.push_back({event, event.version});
  return changes;
}

std::vector<AnnouncedChange> last_changes_of(const std::vector<ModelEvent>& events) {
  LastChanges last(events);
  for (auto event = events.rbegin(); event != events.rend(); ++event) last.add(*event);
  return std::move(last).in_order();
}

}  // namespace weft
