// Ends the work on tasks: puts their bytes into packs, or passes them to readers, and sets the outcome of their units.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "fetch/cache_room.h"
#include "fetch/fetch_options.h"
#include "fetch/fetch_queue.h"
#include "fetch/fetch_state.h"
#include "fetch/transfer.h"
#include "weft/content.h"
#include "weft/result.h"

namespace weft {

// Any thread.
class UnitOutcomes {
 public:
  using Clock = Transfer::Clock;

  // All arguments outlive this.
  UnitOutcomes(FetchState& state, CacheRoom& room, const FetchOptions& options)
      : state_(state), room_(room), options_(options) {}

  // Writes the verified bytes of a task to its pack, if `room`, the result of CacheRoom::make_room(), is ok. Without
  // space, bytes that a reader waits for pass to it from memory (FetchTask::passed).
  Status keep_or_pass(FetchTask& task, const Status& room, std::span<const std::byte> bytes) const;
  // Sets the outcome of the units of a task that began at `begun`, and wakes their readers. `digests` has those of the
  // task's chunks, or the error of the sources. Units that may still come are queued again. Releases the transfer.
  void set(FetchTask& task, const Result<std::vector<Digest>>& digests, Clock::time_point begun)
      WEFT_EXCLUDES(state_.mutex);

 private:
  void set_failed(FetchTask& task, const Error& error) WEFT_REQUIRES(state_.mutex);
  bool may_still_come(const Transfer& transfer, const Error& error) const;

  FetchState& state_;
  CacheRoom& room_;
  const FetchOptions& options_;
};

}  // namespace weft
