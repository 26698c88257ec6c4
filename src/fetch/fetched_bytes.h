// The bytes that this node can serve to peers: those of the store, and those that running transfers have fetched.
#pragma once

#include <span>
#include <vector>

#include "blobs/local_bytes.h"
#include "fetch/fetch_sources.h"
#include "fetch/fetch_state.h"
#include "weft/content.h"
#include "weft/result.h"
#include "weft/store/cluster_store.h"

namespace weft {

// Any thread.
class FetchedBytes final : public LocalBytes {
 public:
  // All arguments outlive this.
  FetchedBytes(Store& store, FetchedCache& cache, const FetchSources& sources, const FetchState& state)
      : store_(store), cache_(cache), sources_(sources), state_(state) {}

  Result<std::vector<OpenPlace>> here(std::span<const ChunkRun> runs) override WEFT_EXCLUDES(state_.mutex);
  Result<std::vector<Digest>> digests(const ContentId& id) override;
  bool is_coming(const ContentId& blob) const WEFT_EXCLUDES(state_.mutex);  // a transfer has the blob

 private:
  Store& store_;
  FetchedCache& cache_;
  const FetchSources& sources_;
  const FetchState& state_;
};

}  // namespace weft
