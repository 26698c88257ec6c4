// Bytes that this node must keep, and that the origin has as well, become cache here.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "weft/origin.h"
#include "weft/result.h"

namespace weft {

struct HandOverOptions {
  std::string origin;
  std::optional<VersionId> version;            // only packs with blobs of this one
  std::chrono::milliseconds patience{10'000};  // with the origin, for a pack
  std::function<bool()> cancelled = [] { return false; };
};
// A pack becomes cache when every blob in it that a version needs lies at the origin, by what that says, in a pack of
// the right size. Others stay, and so do those with blobs that a publish has just brought or relied on, or of versions
// that are not taken to the origin yet. Errc::timed_out: the origin does not answer. Errc::cancelled.
Result<HandOverReport> hand_over(ClusterStore& store, const HandOverOptions& options);

}  // namespace weft
