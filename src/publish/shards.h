// Checks the index of a model in shards, of safetensors or of files of PyTorch, against the shards that are published
// with it.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "weft/model/manifest.h"
#include "weft/result.h"

namespace weft {

bool is_shard_index(std::string_view path);
// True if a bad index refuses the publish. A bad index of files of PyTorch gets a remark: no format but safetensors
// refuses a file.
bool must_be_sound(std::string_view path);

// `index`: tensor -> shard, from parse_shard_index(), of the file at `path` in `manifest`. Errc::invalid if a
// shard is missing; the message starts with `where`. Returns a remark if a tensor is not in the shard that the index
// lists for it: transformers reads all tensors of all shards, whatever the index says about them. "": no remark.
Result<std::string> check_shards(std::string_view where, std::string_view path,
                                 const std::map<std::string, std::string>& index, const Manifest& manifest);

}  // namespace weft
