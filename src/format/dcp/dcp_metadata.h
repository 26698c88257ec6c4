// The file .metadata, or `__N.metadata` of rank N, that torch.distributed.checkpoint (DCP) of PyTorch has saved: which
// tensors it has, and in which files their shards lie. It is a pickle of the dataclasses in
// torch/distributed/checkpoint/metadata.py.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "weft/dtype.h"
#include "weft/model/format.h"
#include "weft/result.h"

namespace weft {

// The run of a file that has one saved item.
struct DcpPlace {
  const std::string* file = nullptr;  // a key of DcpMetadata::files
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  bool transformed = false;  // by an extension of DCP, such as compression
};

// A shard of a tensor: its elements from `begin` on.
struct DcpShard {
  const Shape* begin = nullptr;  // of DcpMetadata::shapes; none: a value that is no tensor
  const Shape* size = nullptr;
  std::optional<DcpPlace> place;  // none: .metadata has none for it
};

// A tensor, or a value that DCP has pickled. Only a tensor has a shape.
struct DcpItem {
  std::string name;              // any bytes
  const Shape* shape = nullptr;  // of DcpMetadata::shapes
  std::vector<DcpShard> shards;  // of a value: its place
  std::string_view why = {};     // not empty: it cannot be read, for this reason
};

// A few bytes of a pickle can repeat a text or a shape, so each is kept once. A copy would point into the original.
struct DcpMetadata {
  DcpMetadata() = default;
  DcpMetadata(const DcpMetadata&) = delete;
  DcpMetadata& operator=(const DcpMetadata&) = delete;

  std::vector<DcpItem> items;  // each name once; of two with one name the last counts
  // By name: the files that some item lies in, and where the last of these items ends.
  std::map<std::string, std::uint64_t, std::less<>> files;
  std::set<Shape> shapes;            // of items and shards
  std::vector<std::string> globals;  // that the pickle names, also if it cannot be read
};

// Reads the bytes of the file, and takes time and memory in proportion to it. Adds the globals to `metadata` even if it
// fails. Errc::invalid: the bytes are no pickle. Errc::unsupported: the pickle is no metadata of DCP, or too large.
Status read_dcp_metadata(std::string bytes, DcpMetadata& metadata);

}  // namespace weft
