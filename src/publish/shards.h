// Checks the index of a sharded safetensors model against the shards that are published with it.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "weft/model/manifest.h"
#include "weft/result.h"

namespace weft {

bool is_shard_index(std::string_view path);

// `index`: tensor -> shard, from parse_safetensors_index(), of the file at `path` in `manifest`. Each shard must be in
// the index's directory and hold the tensors that the index lists for it. Messages start with `where`.
Status check_shards(std::string_view where, std::string_view path, const std::map<std::string, std::string>& index,
                    const Manifest& manifest);

}  // namespace weft
