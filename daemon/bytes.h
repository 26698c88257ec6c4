// The bytes of this node: what is fetched for its mounts, and taken to the origin for others.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/json.h"
#include "control/server.h"
#include "daemon/access.h"
#include "daemon/figures.h"
#include "daemon/live_config.h"
#include "daemon/peers.h"
#include "fetch/fetcher.h"
#include "fetch/repairs.h"
#include "origin/write_behind.h"
#include "weft/cluster_store.h"
#include "weft/registry.h"

namespace weft {

struct Bytes {
  // `config.origin` may be "": then nothing is fetched from there or taken there.
  // `others` is null for a node alone; all outlive this.
  Bytes(ClusterStore& of, LiveConfig& live, const Registry& registry, Peers* others);
  ~Bytes();

  void configure();  // takes over what `config` says now

  // Brings the manifests of all versions that are known by name alone: only then it is known what they need.
  Status look_at_all(const std::function<bool()>& cancelled);

  ClusterStore& store;
  LiveConfig& config;
  Peers* peers;
  const std::shared_ptr<Repairs> repairs = std::make_shared<Repairs>();  // of what the fetcher finds damaged
  Fetcher fetcher;
  std::unique_ptr<WriteBehind> behind;  // null without an origin
};

// look, bring, cold, prefetch, pin, evict, repair, stage_out, origin. `bytes` outlives the server.
void serve_bytes(control::Server& server, Bytes& bytes);
void add_byte_figures(Figures& figures, Bytes& bytes);
void write_bytes_status(JsonWriter& json, Bytes& bytes);  // members of an object

}  // namespace weft
