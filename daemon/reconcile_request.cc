// Merges what the nodes, the origin and a registry that has lost history know.

#include "control/call.h"
#include "daemon/access.h"
#include "daemon/parts.h"
#include "daemon/serve.h"
#include "daemon_api/call_progress.h"
#include "weft/cluster/origin.h"

namespace weft {
namespace {

// Returns the names at the origin; none if there is no origin. Damage there is a problem, and the rest counts.
Result<OriginRegistry> at_origin(const DaemonParts& parts, Progress& progress) {
  const auto config = parts.config.get();
  if (config->origin.empty()) return OriginRegistry{};
  auto found = registry_at_origin(config->origin, true, Publishers::as_published, progress);
  if (found.ok() || found.error().code != Errc::not_found) return found;
  return OriginRegistry{};  // no version was saved yet
}

// Requires the rights to publish and to remove all names.
Result<ReconcileReport> reconcile(control::Call& call, const ReconcileWish& wish, DaemonParts& parts) {
  const auto config = parts.config.get();
  WEFT_CHECK(check_every_access(config->publish, call.peer(), "reconcile the registry"));
  WEFT_CHECK(check_every_access(config->remove, call.peer(), "reconcile the registry"));
  CallProgress progress(call);
  WEFT_TRY(const OriginRegistry found, at_origin(parts, progress));
  progress.phase("bringing back what the registry lacks");
  ReconcileRequest request;
  request.dry_run = wish.dry_run;
  request.at_origin = found.changes;
  request.cancelled = [&progress] { return progress.cancelled(); };
  WEFT_TRY(ReconcileReport report, parts.registry.reconcile(request));
  report.problems.insert(report.problems.end(), found.report.problems.begin(), found.report.problems.end());
  parts.write_behind();
  return report;
}

}  // namespace

void serve_reconcile(control::Server& server, DaemonParts& parts) {
  serve(server, parts, "reconcile", reconcile);
}

}  // namespace weft
