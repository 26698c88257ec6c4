// Follows the events of a store. Every follower in weft uses this.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "events/event.h"
#include "weft/result.h"
#include "weft/store/commits.h"
#include "weft/store/store.h"

namespace weft {

struct EventBatch {
  std::vector<ModelEvent> events;  // oldest first
  std::uint64_t next = 0;          // position to continue from; unchanged if there are no events
};

// Returns the events since `position`, from about 1 MiB of the journal at a time. Returns a single `restart` if the
// journal cannot list them. Any thread.
Result<EventBatch> events_since(Store& store, std::uint64_t position);

// Sets new_bytes of a publish event if the version's content is local. Best effort. Any thread.
void add_new_bytes(Store& store, ModelEvent& event);

// Visits the state of the store after `restart` as events at its position: for each model its newest version, then
// other tagged versions. The state may include commits after the restart. The journal events that follow repeat them.
Status present_state(Store& store, const ModelEvent& restart, const std::function<Status(ModelEvent)>& visit);

// A position in the journal, and a watch for commits. Needs no daemon and no write access to the store. One thread.
class EventFollower {
 public:
  // Starts at position `since`, or at the end of the journal. `store` outlives the follower.
  static Result<EventFollower> begin(Store& store, std::optional<std::uint64_t> since = {});

  // Returns the events since the last call; a long history takes several calls. If it returns none, call wait().
  Result<std::vector<ModelEvent>> next();
  // Returns when next() may have more events, or after `time`.
  void wait(std::chrono::milliseconds time) const;
  int fd() const { return watch_->fd(); }  // readable when next() may have more events
  std::uint64_t position() const { return position_; }

 private:
  EventFollower(Store& store, std::unique_ptr<CommitWatch> watch, std::uint64_t position)
      : store_(&store), watch_(std::move(watch)), position_(position) {}

  Store* store_;
  std::unique_ptr<CommitWatch> watch_;
  std::uint64_t position_;
};

}  // namespace weft
