// A version that is given by what differs from a base: the manifest of the
// whole, from two manifests.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/manifest.h"
#include "weft/result.h"

namespace weft {

struct InheritInput {
  std::string_view base_name;  // "bert@1", for messages
  const Manifest& base;
  const Manifest& given;                // safetensors files: tensors that differ; others: whole files
  std::span<const std::string> places;  // of the given files on disk, for messages
  bool add = false;                     // what the base lacks is added, another type or shape taken
};

struct Inherited {
  Manifest manifest;
  // Files that have a header of ours, with its bytes: their first extent's id
  // has only its length.
  std::vector<std::pair<std::string, std::string>> headers;
};

// The bytes of each file are those that it would have had it been published
// whole: a file keeps its header while its tensors keep their types and shapes;
// else it is laid out as the reference implementation of safetensors does.
// Errc:: invalid: a tensor or file that the base lacks, another type or shape,
// a name in several files of the base, a sharded base that gets a tensor but no
// index. Errc::unsupported: a scattered tensor in the base or in what is given.
// Ids need no digests: the same call before and after hashing.
Result<Inherited> inherit_manifest(const InheritInput& input);

}  // namespace weft
