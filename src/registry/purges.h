// The versions that were purged, in the keys p/. A purged version is removed, is never undeleted, and each node frees
// its content at once. The mirror reads all keys when it connects, so that a node that was away learns of them. Any
// thread.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "registry/own_registry.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

class Purges {
 public:
  explicit Purges(OwnRegistry& own) : own_(own) {}  // `own` outlives this

  std::vector<VersionName> list() const;
  // Records that a removed version is purged. Errc::exists: it is live. Errc::not_found: there is no such version.
  Status put(const VersionName& version);

  // Reads all keys. True if there are new ones.
  Result<bool> read();
  bool saw(const RegistryKey& key);  // the watch has received this key; true if it is new

 private:
  OwnRegistry& own_;
  mutable Mutex mutex_;
  std::set<VersionName> purged_ WEFT_GUARDED_BY(mutex_);
};

}  // namespace weft
