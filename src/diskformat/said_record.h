// The records of an origin's journal: one file each, named by its time and what it says, so that all nodes that heard
// the same write one file. Only user of its schema (in the .cc).
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/cluster_store.h"
#include "weft/result.h"

namespace weft {

// "<time>-<hash>", of a tag with ".tag" behind it, of a removal with ".rm".
std::string said_name(const Said& said, std::string_view cluster);
std::vector<std::byte> encode_said(const Said& said, std::string_view cluster);

struct SaidRecord {
  Said said;
  std::string cluster;  // of a tag
};
// Names, numbers and texts are within their bounds. Errc::corrupt: not one whole record, or an impossible one;
// Errc::unsupported: of a kind, or a version, that this weft does not know.
Result<SaidRecord> decode_said(std::span<const std::byte> bytes, std::string_view where);

}  // namespace weft
