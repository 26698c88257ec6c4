// Which node a directory node names as the source of a version.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <string>

#include "base/mutex.h"
#include "base/time_source.h"
#include "peers/directory.h"
#include "weft/content.h"
#include "weft/deadline.h"
#include "weft/result.h"
#include "weft/store/store.h"

namespace weft {

// Any thread.
class VersionSource {
 public:
  static constexpr std::size_t kPublishersMax = 4'096;  // then all known ones are looked up again
  // After a search in vain the next one waits for so long, and kPauseParts times as long as the search took. Until then
  // no publisher is found that is not known: nodes may join for any number of manifests that no version has.
  static constexpr std::chrono::milliseconds kPauseMin{20};
  static constexpr int kPauseParts = 4;

  // `is_member`: true for a node that can be called. The arguments outlive this.
  VersionSource(Store& store, PeerDirectory& directory, std::function<bool(const std::string& node)> is_member,
                const TimeSource& time = steady_time())
      : store_(store), directory_(directory), is_member_(std::move(is_member)), time_(time) {}

  // Returns the version's publisher, or else the first node that has announced the whole version; "": none is a member.
  // Looks at all version records if it has not found the publisher before, and a search in vain was not just made.
  std::string find(const Digest& manifest);

 private:
  std::string publisher(const Digest& manifest) WEFT_EXCLUDES(mutex_);
  std::string search(const Digest& manifest);

  Store& store_;
  PeerDirectory& directory_;
  const std::function<bool(const std::string& node)> is_member_;
  const TimeSource& time_;
  Mutex mutex_;
  std::map<Digest, std::string> publishers_ WEFT_GUARDED_BY(mutex_);
  Deadline search_at_ WEFT_GUARDED_BY(mutex_){};
};

}  // namespace weft
