// Chunks that are equal in a blob and its base, at the same offset. Their digests are compared once the first chunk of
// the blob has arrived with its proof. Equal chunks are copied locally, without a source, and verified like all others.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "blobs/local_bytes.h"
#include "fetch/cache_room.h"
#include "fetch/fetch_bases.h"
#include "fetch/fetch_queue.h"
#include "fetch/fetch_sources.h"
#include "fetch/fetch_state.h"
#include "fetch/transfer.h"
#include "fetch/unit_outcomes.h"
#include "weft/content.h"
#include "weft/result.h"

namespace weft {

// Any thread.
class SameCopies {
 public:
  // What a SameCopies needs. All outlive it.
  struct Parts {
    FetchState& state;
    const FetchSources& sources;
    FetchBases& bases;
    LocalBytes& local;
    CacheRoom& room;
    UnitOutcomes& outcomes;
  };

  explicit SameCopies(const Parts& parts) : state_(parts.state), parts_(parts) {}

  // Compares the blobs whose first chunk a task has fetched, while its units run: other units of these blobs wait for
  // the comparison. Reads no bytes.
  void compare(const FetchTask& task) WEFT_EXCLUDES(state_.mutex);
  // Copies the equal units of a task from their bases to its pack, and returns the digests of their chunks. Nothing: a
  // base is missing or damaged. Its units are then left to the sources, and the task has ended.
  Result<std::optional<std::vector<Digest>>> copy(FetchTask& task) WEFT_EXCLUDES(state_.mutex);

 private:
  void compare(const std::shared_ptr<Transfer>& transfer, std::size_t blob) WEFT_EXCLUDES(state_.mutex);
  std::optional<std::vector<Digest>> read_base(const FetchTask& task, std::span<const ChunkRun> runs,
                                               std::span<std::byte> to) WEFT_EXCLUDES(state_.mutex);
  void leave(const FetchTask& task) WEFT_EXCLUDES(state_.mutex);

  FetchState& state_;
  const Parts parts_;
};

}  // namespace weft
