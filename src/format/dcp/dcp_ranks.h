// The metadata of all ranks of a checkpoint that PyTorch has saved without collectives
// (dcp.save(use_collectives=False)): rank N writes `__N.metadata` with what it has itself, and no .metadata. No file
// says how many ranks there are.
#pragma once

#include <deque>
#include <vector>

#include "format/dcp/dcp_metadata.h"

namespace weft {

struct DcpJoined {
  // By name, each once: with the shards of all ranks, but each place in the tensor once, as the first rank has it.
  std::vector<DcpItem> items;
  // By name, each once: what other ranks have at such a place, or as another tensor or value of that name.
  std::vector<DcpItem> copies;
};

// The result views the metadata. The items of a single file are as that file has them.
DcpJoined join_ranks(const std::deque<DcpMetadata>& all);

}  // namespace weft
