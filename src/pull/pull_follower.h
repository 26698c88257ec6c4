// The area of a pull, with the bytes that come from other nodes: copies while this node waits in line for the claim of
// the pull, and the rest if the node that had the claim ends without a version.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "drafts/pull_area.h"
#include "hub/hub_listing.h"
#include "pull/following.h"
#include "weft/cluster/pulled.h"
#include "weft/deadline.h"
#include "weft/result.h"

namespace weft {

// One thread.
class PullFollower {
 public:
  // `files`: those that this node wants.
  PullFollower(const SafePath& pulls, std::string key, std::vector<HubFile> files)
      : pulls_(pulls), key_(std::move(key)), files_(std::move(files)) {}

  // Returns the area, opened once. Errors as PullArea::open().
  Result<PullArea*> area(const Patience& patience);
  // Copies news from a node before this one in line, and returns when it may be called again, as Following::step(). If
  // another pull on this node has the area, or after a failure, copies nothing.
  Deadline step(PulledFiles& from, const std::function<bool()>& stopped);
  // Copies the rest that the last holder of the claim has, unless it is null, and ends the copying. Call it with the
  // area open, before files are received there. An error is no failure of the pull: its source has the bytes too.
  void finish(PulledFiles* last, const std::function<bool()>& stopped);
  const std::string& failure() const { return failure_; }  // of this node's disk, as text; "" if there was none

 private:
  bool begin();  // false: nothing can be copied now
  void fail(const Error& error);

  const SafePath pulls_;
  const std::string key_;
  const std::vector<HubFile> files_;
  std::string failure_;
  std::optional<PullArea> area_;
  std::optional<Following> following_;
};

}  // namespace weft
