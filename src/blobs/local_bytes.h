// Bytes that this node can give to others, as its daemon knows them.
#pragma once

#include <span>
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

}  // namespace weft
