// Follows a store: there is no other way.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "events/event.h"
#include "weft/commits.h"
#include "weft/result.h"
#include "weft/store.h"

namespace weft {

struct EventBatch {
  std::vector<ModelEvent> events;  // oldest first
  std::uint64_t next = 0;          // where to read on; the position that was asked for where there is nothing
};

// What happened since `position`, of about a MiB of the journal at most. One `restart` where the journal cannot tell.
// Any thread.
Result<EventBatch> events_since(Store& store, std::uint64_t position);

// Gives a publish its new_bytes, if its content is local by now. Best effort. Any thread.
void add_new_bytes(Store& store, ModelEvent& event);

// The state behind a restart, as events of its position: each model with its newest version, and other tagged versions.
// May mix states of the store from the restart on: what follows repeats what came meanwhile.
Status present_state(Store& store, const ModelEvent& restart, const std::function<Status(ModelEvent)>& visit);

// A wait for commits and a position, together. One thread. Needs no daemon, and no right to write.
class EventFollower {
 public:
  // From this position on; without one, from now on. `store` outlives it.
  static Result<EventFollower> begin(Store& store, std::optional<std::uint64_t> since = {});

  // What came since the last call; a long history in parts. Nothing: wait() may be called.
  Result<std::vector<ModelEvent>> next();
  // Returns when next() may have more, at the latest after this time.
  void wait(std::chrono::milliseconds time) const;
  int fd() const { return watch_->fd(); }  // readable once next() may have more
  std::uint64_t position() const { return position_; }

 private:
  EventFollower(Store& store, std::unique_ptr<CommitWatch> watch, std::uint64_t position)
      : store_(&store), watch_(std::move(watch)), position_(position) {}

  Store* store_;
  std::unique_ptr<CommitWatch> watch_;
  std::uint64_t position_;
};

}  // namespace weft
