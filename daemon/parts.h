// The parts of the daemon that request handlers use, and the groups of requests. Each serve_…() sets the handlers of
// its requests; its arguments outlive the server.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "control/server.h"
#include "daemon/background/auto_gc.h"
#include "daemon/background/flush_behind.h"
#include "daemon/background/import_memory.h"
#include "daemon/background/kept_versions.h"
#include "daemon/bytes.h"
#include "daemon/config.h"
#include "daemon/figures.h"
#include "daemon_api/control_messages.h"
#include "monitor/mount_table.h"
#include "origin/collect.h"
#include "pull/served_pulls.h"
#include "weft/cluster/origin.h"
#include "weft/cluster/registry.h"
#include "weft/store/cluster_store.h"

namespace weft {

// Of pulls of other nodes, since the start.
struct PullCounts {
  std::atomic<std::uint64_t> followed = 0;       // pulls from which this node has copied while it waited
  std::atomic<std::uint64_t> copied_bytes = 0;   // while it waited, and when it took over
  std::atomic<std::uint64_t> adopted_bytes = 0;  // copied bytes that the cache took over
};

struct DaemonParts {
  ClusterStore& store;
  Registry& registry;
  LiveConfig& config;
  Figures& figures;
  Bytes& bytes;
  FlushBehind& memory;
  ImportMemory& import_memory;
  AutoGc& auto_gc;
  ServedPulls& served_pulls;
  PullCounts& pull_counts;
  KeptVersions& kept_versions;
  MountTable& mounts;
  std::uint64_t since_ns = 0;

  // Starts to write what is new, names and bytes, to the origin. Call after each change of names. Without an origin it
  // has no effect.
  void write_behind() const {
    if (bytes.behind) bytes.behind->wake();
  }
};

void serve_imports(control::Server& server, DaemonParts& parts);  // import, may_publish
void serve_bundles(control::Server& server, DaemonParts& parts);  // bundle
void serve_pulls(control::Server& server, DaemonParts& parts);    // claim, pulled, adopt
void add_pull_figures(Figures& figures, const DaemonParts& parts);
// Runs gc. If etcd does not answer, or the manifest of a live version cannot be fetched, it frees all that no version
// decides, and the outcome says the rest. Errc::busy: another version has come meanwhile.
Result<GcOutcome> collect_all(DaemonParts& parts, const GcOptions& request, const std::function<bool()>& cancelled,
                              Progress& progress);

// Frees what purged versions alone needed at the origin, and with a horizon what removed ones did.
Result<OriginGcReport> collect_origin_now(DaemonParts& parts, OriginGcOptions options, Progress& progress);

void serve_changes(control::Server& server, DaemonParts& parts);  // tag, note, mv, rm, undelete, gc
void serve_purge(control::Server& server, DaemonParts& parts);
void serve_origin(control::Server& server, DaemonParts& parts);     // restore, gc_origin, fsck_origin
void serve_reconcile(control::Server& server, DaemonParts& parts);  // reconcile
void serve_keys(control::Server& server, DaemonParts& parts);       // rotate_key
void serve_nodes(control::Server& server, DaemonParts& parts);      // node_drain, node_remove
void serve_status(control::Server& server, DaemonParts& parts);     // status, peers, metrics, mount

void add_mount_figures(Figures& figures, const MountTable& mounts);
// Adds the metrics of the control socket, the registry, memory and scrub.
void add_node_figures(Figures& figures, DaemonParts& parts, const control::Server& server);
std::string status_json(DaemonParts& parts, const control::Server& server);

}  // namespace weft
