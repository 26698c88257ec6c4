// The local bytes that a daemon can serve to its peers.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "weft/bytes/pack.h"
#include "weft/bytes/source.h"
#include "weft/content.h"
#include "weft/result.h"

namespace weft {

// Any thread.
class LocalBytes {
 public:
  virtual ~LocalBytes() = default;
  // Returns the place of each run, verified: in the store, or in a pack that is being filled. A run that is not local
  // gets no pack.
  virtual Result<std::vector<OpenPlace>> here(std::span<const ChunkRun> runs) = 0;
  // Returns the digests of all chunks of a blob that is local or being fetched. Errc::not_found.
  virtual Result<std::vector<Digest>> digests(const ContentId& id) = 0;
};

// LocalBytes::here() for runs that may not exist: a run that cannot be opened gets no pack.
inline std::vector<OpenPlace> here_if_any(LocalBytes& bytes, std::span<const ChunkRun> runs) {
  if (auto all = bytes.here(runs); all.ok()) return *std::move(all);
  std::vector<OpenPlace> places(runs.size());
  for (std::size_t i = 0; i < runs.size(); ++i)
    if (auto one = bytes.here(runs.subspan(i, 1)); one.ok()) places[i] = std::move(one->front());
  return places;
}

// LocalBytes::here() for runs that must all be local. Errc::not_found if one is not.
inline Result<std::vector<OpenPlace>> here_or_error(LocalBytes& bytes, std::span<const ChunkRun> runs) {
  WEFT_TRY(auto places, bytes.here(runs));
  for (std::size_t i = 0; i < places.size(); ++i)
    if (!places[i].pack)
      return Error{Errc::not_found, fmt::format("chunks {} to {} of the blob {} are not here", runs[i].first,
                                                runs[i].first + runs[i].count, to_hex(runs[i].id.root))};
  return places;
}

}  // namespace weft
