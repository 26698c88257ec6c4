// Which node a directory node names as the source of a version.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>

#include "base/mutex.h"
#include "peers/directory.h"
#include "weft/content.h"
#include "weft/result.h"
#include "weft/store/store.h"

namespace weft {

// Any thread.
class VersionSource {
 public:
  static constexpr std::size_t kPublishersMax = 4'096;  // then all known ones are looked up again

  // `is_member`: true for a node that can be called. The arguments outlive this.
  VersionSource(Store& store, PeerDirectory& directory, std::function<bool(const std::string& node)> is_member)
      : store_(store), directory_(directory), is_member_(std::move(is_member)) {}

  // Returns the version's publisher, or else the first node that has announced the whole version; "": none is a member.
  // Looks at all version records if it has not found the publisher before.
  std::string find(const Digest& manifest);

 private:
  std::string publisher(const Digest& manifest) WEFT_EXCLUDES(mutex_);

  Store& store_;
  PeerDirectory& directory_;
  const std::function<bool(const std::string& node)> is_member_;
  Mutex mutex_;
  std::map<Digest, std::string> publishers_ WEFT_GUARDED_BY(mutex_);
};

}  // namespace weft
