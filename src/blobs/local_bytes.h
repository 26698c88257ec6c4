// Bytes that this node can give to others, as its daemon knows them.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "weft/content.h"
#include "weft/pack.h"
#include "weft/result.h"
#include "weft/source.h"

namespace weft {

// Any thread.
class LocalBytes {
 public:
  virtual ~LocalBytes() = default;
  // Where each of these runs lies, verified: in the store, or in a pack that is being filled. Without a pack: not here.
  virtual Result<std::vector<OpenPlace>> here(std::span<const ChunkRun> runs) = 0;
  // Of all chunks of a blob that is here, or on its way. Errc::not_found.
  virtual Result<std::vector<Digest>> digests(const ContentId& id) = 0;
};

// LocalBytes::here() for runs that need not exist anywhere: one that cannot be opened has no pack.
inline std::vector<OpenPlace> here_if_any(LocalBytes& bytes, std::span<const ChunkRun> runs) {
  if (auto all = bytes.here(runs); all.ok()) return *std::move(all);
  std::vector<OpenPlace> places(runs.size());
  for (std::size_t i = 0; i < runs.size(); ++i)
    if (auto one = bytes.here(runs.subspan(i, 1)); one.ok()) places[i] = std::move(one->front());
  return places;
}

}  // namespace weft
