// The versions that were purged, in the keys p/. A purged version is removed, is never undeleted, and each node frees
// its content at once. The mirror reads all keys when it connects, so that a node that was away learns of them. Any
// thread.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/mutex.h"
#include "registry/own_registry.h"
#include "registry/registry_compare.h"
#include "registry/registry_list.h"
#include "registry/registry_records.h"
#include "weft/cluster/registry.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

class Purges {
 public:
  explicit Purges(OwnRegistry& own) : own_(own) {}  // `own` outlives this

  std::vector<PurgedVersion> list() const;
  // Records that a removed version is purged. Errc::exists: it is live, or another version has the number.
  // Errc::not_found: there is no such version. Errc::busy: others change its record all the time.
  Status put(const PurgedVersion& version);
  // Finds the versions of `lacking` that are purged: they come back with their keys.
  void mark(Lacking& lacking) const;
  // Puts the known keys again that a registry has lost, after its versions are back. Adds the purges that the registry
  // cannot have to `refused`. A purge of a version that is live in the registry is forgotten.
  Status bring_back(std::vector<RefusedChange>& refused);
  // Follows the versions that this list has under other numbers. Call before order().
  void renumber(RegistryList& list);

  // Reads all keys. True if there are new ones.
  Result<bool> read();
  // The watch has received this key; true if it is new. Errc::corrupt: the value does not verify.
  Result<bool> saw(const RegistryKey& key, const etcd::KeyValue& item);

 private:
  Result<bool> try_put(const PurgedVersion& version);
  bool add(PurgedVersion version);
  void forget(const PurgedVersion& version);

  OwnRegistry& own_;
  mutable Mutex mutex_;
  std::map<VersionKey, std::uint64_t> purged_ WEFT_GUARDED_BY(mutex_);  // numbers
};

}  // namespace weft
