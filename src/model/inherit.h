// A version that is given by its differences from a base: composes the whole manifest from two manifests.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/model/manifest.h"
#include "weft/result.h"

namespace weft {

struct InheritInput {
  std::string_view base_name;  // "bert@1", for messages
  const Manifest& base;
  const Manifest& given;                // safetensors files: the changed tensors; others: whole files
  std::span<const std::string> places;  // paths of the given files, for messages
  bool add = false;                     // accept new tensors, files and empty directories, and other types and shapes
};

struct Inherited {
  Manifest manifest;
  // Path and header of each file whose header weft wrote. The id of such a file's first extent has only its length.
  std::vector<std::pair<std::string, std::string>> headers;
};

// Returns the manifest of the whole version. Each file has the bytes that it would have in a whole publish. A file
// keeps its header while its tensors keep their types and shapes; else it is laid out as the reference implementation
// of safetensors does. A file that inherits a part of its bytes, but not all, has no SHA-256. Errc::invalid: a tensor,
// file or directory that the base lacks, another type or shape, a name in several files of the base, a sharded base
// that gets a tensor but no index. Errc::unsupported: a scattered tensor in either manifest. Ids need no digests, so
// the call can be made before and after hashing.
Result<Inherited> inherit_manifest(const InheritInput& input);

}  // namespace weft
