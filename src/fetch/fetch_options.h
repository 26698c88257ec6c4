// The options of a Fetcher (fetcher.h), and what may change of them while it runs.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "fetch/cache_space.h"
#include "pace/pace_gate.h"
#include "weft/bytes/cold.h"
#include "weft/bytes/swarm.h"
#include "weft/content.h"
#include "weft/deadline.h"

namespace weft {

struct FetchOptions {
  unsigned threads = 4;                              // workers, which read and verify; with swarms, kAcceptedMax more
  std::chrono::milliseconds patience = kSilenceMax;  // with silent sources
  std::chrono::milliseconds kept{30'000};            // an unused transfer is dropped after this time
  std::chrono::milliseconds refused{2'000};          // a failed resolution is not repeated within this time
  // True if the publisher of a version is in the cluster now. Any thread; empty: always true.
  std::function<bool(const std::string& publisher)> is_there;
  // Called if stored bytes of a blob turn out to be damaged while they serve as a base. Any thread; must not wait.
  // Empty: damage is only logged.
  std::function<void(const ContentId& id)> damaged;
  // Paces what the sources read. Null: nothing does.
  std::shared_ptr<PaceGate> gate;
  CacheSpace::Disk disk;  // empty: the space of the store's file system
  // Brings units of large versions, for fetches that no reader waits for (swarm_fetch.h). Outlives the Fetcher; null:
  // no swarms.
  VersionSwarms* swarms = nullptr;

  bool has_member(const std::string& publisher) const { return !is_there || is_there(publisher); }
};

// The settings that may change while bytes move.
struct FetchPolicy {
  std::uint64_t cache_max = UINT64_MAX;  // disk space for fetched bytes
  ColdPolicy cold = ColdPolicy::automatic;
  bool sparse = true;          // chunks may come as differences from local versions
  bool expect_others = false;  // other nodes fetch the same versions, also if none is known yet
};

}  // namespace weft
