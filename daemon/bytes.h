// Moves the bytes of this node: fetches them for its mounts, and writes published ones to the origin.
#pragma once

#include <functional>
#include <memory>

#include "base/json.h"
#include "control/server.h"
#include "daemon/config.h"
#include "daemon/figures.h"
#include "daemon/peers.h"
#include "fetch/fetcher.h"
#include "fetch/requests/repairs.h"
#include "monitor/polled.h"
#include "origin/write_behind.h"
#include "pace/pace_gate.h"
#include "weft/cluster/registry.h"
#include "weft/store/cluster_store.h"

namespace weft {

// Sizes that a walk over the index finds.
struct StoreSizes {
  StoreCounts counts;
  std::uint64_t unsaved_bytes = 0;  // size of the files of versions that are not at the origin
};

struct Bytes {
  // `config.origin` is "" for a node without an origin, and `others` is null for a node without peers. All arguments
  // outlive this.
  Bytes(ClusterStore& of, LiveConfig& live, const Registry& registry, Peers* others, std::shared_ptr<PaceGate> paces);
  ~Bytes();

  void configure();  // applies the current `config`

  // A live version whose manifest could not be fetched.
  struct Unresolved {
    VersionRow version;
    Error error;
  };
  // Fetches the manifests of all bare versions, and returns those that are left. Without a manifest, gc does not know
  // which blobs a version needs. After one failure it tries no other version of the same publisher. Errc::cancelled.
  Result<std::vector<Unresolved>> resolve_all(const std::function<bool()>& cancelled);

  ClusterStore& store;
  LiveConfig& config;
  Peers* peers;
  const std::shared_ptr<PaceGate> gate;                                  // of this node
  const std::shared_ptr<Repairs> repairs = std::make_shared<Repairs>();  // for damaged blobs that the fetcher finds
  Fetcher fetcher;
  std::unique_ptr<WriteBehind> behind;  // null without an origin
  Polled<StoreSizes> sizes;
  Polled<bool> origin_reachable;
};

// Adds the requests resolve, bring, cold, prefetch, pin, evict, repair, stage_out and origin. `bytes` outlives the
// server.
void serve_bytes(control::Server& server, Bytes& bytes);
void add_byte_figures(Figures& figures, Bytes& bytes);
// Adds the metrics of the store, of its disk and of the origin.
void add_store_figures(Figures& figures, Bytes& bytes);
void write_bytes_status(JsonWriter& json, Bytes& bytes);  // adds members to the open object

}  // namespace weft
