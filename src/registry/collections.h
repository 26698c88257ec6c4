// The latest collection of the origin, in the key g. The sequences of the announcements of one origin grow. Any
// thread.
#pragma once

#include <cstdint>

#include "base/mutex.h"
#include "registry/own_registry.h"
#include "weft/cluster/registry.h"
#include "weft/result.h"

namespace weft {

class Collections {
 public:
  explicit Collections(OwnRegistry& own) : own_(own) {}  // `own` outlives this

  // As Registry::origin_collection() and Registry::announce().
  OriginCollection latest() const;
  Status announce(const OriginCollection& next);
  // Announces the latest one again if a registry has lost it. A value that does not verify stays.
  Status bring_back();

  // Reads the key, before the mirror shows what it has read of a state that is not later.
  Status read();
  // Records an event of the key that the watch has received, before the mirror shows the later changes.
  Status saw(const etcd::Event& event);

 private:
  void take(OriginCollection collection);

  OwnRegistry& own_;
  mutable Mutex mutex_;
  OriginCollection latest_ WEFT_GUARDED_BY(mutex_);
};

}  // namespace weft
