// The index of a sharded safetensors model against the shards that are published with it.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "weft/manifest.h"
#include "weft/result.h"

namespace weft {

bool is_shard_index(std::string_view path);

// `index`: tensor -> shard, as parse_safetensors_index gives it, of the file at `path` in `manifest`. Each shard must
// be there, beside the index, and hold the tensors that the index says. Messages start with `where`.
Status check_shards(std::string_view where, std::string_view path, const std::map<std::string, std::string>& index,
                    const Manifest& manifest);

}  // namespace weft
