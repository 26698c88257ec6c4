// Finds the versions of the cluster that lie on one node only.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "daemon/parts.h"
#include "weft/content.h"
#include "weft/names.h"
#include "weft/result.h"

namespace weft {

// The origin lacks this live version, and at most one node has its bytes.
struct SoleVersion {
  VersionName name;
  Digest manifest;
  std::uint64_t bytes = 0;
  std::uint64_t time_ns = 0;  // of its publish
  std::string publisher;      // id of the node that published it
  std::string holder;         // id of the node; if no present node has the version: of its publisher
  bool present = false;       // the holder is a member
};

enum class CopyKind : std::uint8_t {
  any,   // fetched bytes count, though the node may evict them
  kept,  // only bytes count that the node keeps: its own versions, and pinned ones
};

// Asks the members and the origin. A version without a second copy of this kind is in the result. Takes a call for each
// 64 versions to each member, and waits for a member that is silent only once. Errors name the member or the origin
// that did not answer: then the result is unknown. Errc::cancelled. Without a cluster the result is empty. `without`:
// nodes whose copies do not count. Any thread.
Result<std::vector<SoleVersion>> sole_versions(DaemonParts& parts, CopyKind kind,
                                               const std::function<bool()>& cancelled,
                                               const std::set<std::string>& without = {});

}  // namespace weft
