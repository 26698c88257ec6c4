// Requests about the whole origin: restores the names of a lost registry from it, frees what no version needs there,
// and checks and repairs its files.
#include <algorithm>
#include <chrono>
#include <set>
#include <string>
#include <variant>

#include <fmt/core.h>

#include "base/log.h"
#include "control/call.h"
#include "daemon/access.h"
#include "daemon/parts.h"
#include "daemon/serve.h"
#include "daemon_api/call_progress.h"
#include "fetch/requests/refetch.h"
#include "origin/check.h"
#include "origin/collect.h"
#include "origin/collect_order.h"
#include "origin/dir.h"
#include "os/sys.h"

namespace weft {
namespace {

constexpr auto kRestoreCatchUpMax = std::chrono::seconds(10);
constexpr std::uint64_t kGraceSecondsMax = 100ULL * 365 * 24 * 3'600;
constexpr std::size_t kLinesMax = 200;  // lines of each list in the answer

const std::string& model_of(const MirrorChange& change) {
  if (const auto* version = std::get_if<MirroredVersion>(&change)) return version->version.model_name;
  if (const auto* tag = std::get_if<MirroredTag>(&change)) return tag->model;
  if (const auto* purge = std::get_if<MirroredPurge>(&change)) return purge->model;
  return std::get<MirroredMemory>(change).model;
}

class Returning {
 public:
  Returning(Registry& registry, OriginRegistry found, Progress& progress)
      : registry_(registry),
        changes_(std::move(found.changes)),
        report_(std::move(found.report)),
        progress_(progress) {}

  // Restores all models, except those that conflict with the registry: they are skipped whole.
  Result<RestoreReport> run() {
    WEFT_CHECK(check());
    WEFT_CHECK(bring_back());
    cut(report_.problems);
    cut(report_.mended);
    return report_;
  }

 private:
  Status check() {
    progress_.phase("comparing with the registry");
    for (const MirrorChange& change : changes_) {
      WEFT_CHECK(check_cancelled(progress_));
      const auto told = registry_.bring_back(change, true);
      if (told.ok()) continue;
      if (told.error().code != Errc::exists) return told.error();
      report_.problems.push_back(told.error().message);
      conflicts_.insert(model_of(change));
    }
    return {};
  }

  Status bring_back() {
    progress_.phase("filling the registry");
    report_.models = report_.versions = report_.removed = report_.tags = 0;
    std::set<std::string> models;
    for (const MirrorChange& change : changes_) {
      WEFT_CHECK(check_cancelled(progress_));
      if (conflicts_.contains(model_of(change))) continue;
      WEFT_TRY(const bool made, registry_.bring_back(change, false));
      if (made) count(change);
      if (made) models.insert(model_of(change));
    }
    report_.models = models.size();
    return {};
  }

  void count(const MirrorChange& change) {
    const auto* version = std::get_if<MirroredVersion>(&change);
    ++(version == nullptr ? report_.tags : version->version.removed ? report_.removed : report_.versions);
  }

  static void cut(std::vector<std::string>& lines) {
    if (lines.size() <= kLinesMax) return;
    const std::size_t more = lines.size() - kLinesMax;
    lines.resize(kLinesMax);
    lines.push_back(fmt::format("and {} more", more));
  }

  Registry& registry_;
  const std::vector<MirrorChange> changes_;
  RestoreReport report_;
  Progress& progress_;
  std::set<std::string> conflicts_;
};

// Requires the rights to publish and to remove all names.
Result<RestoreReport> restore(control::Call& call, const RestoreRequest& request, DaemonParts& parts) {
  const auto config = parts.config.get();
  WEFT_CHECK(check_every_access(config->publish, call.peer(), "restore the registry"));
  WEFT_CHECK(check_every_access(config->remove, call.peer(), "restore the registry"));
  if (!config->clustered()) return Error{Errc::unsupported, "this daemon has no registry but its store"};
  if (config->origin.empty()) return Error{Errc::unsupported, "this daemon has no origin configured"};
  CallProgress progress(call);
  WEFT_TRY(OriginRegistry found, registry_at_origin(config->origin, request.accept_loss, Publishers::origin, progress));
  const bool refused = found.report.refused;
  WEFT_TRY(const RestoreReport report, Returning(parts.registry, std::move(found), progress).run());
  WEFT_CHECK(parts.registry.catch_up(Registry::Clock::now() + kRestoreCatchUpMax));
  if (!refused && parts.store.cluster()) WEFT_CHECK(take_over_origin(config->origin, parts.store.cluster()->cluster));
  parts.write_behind();
  return report;
}

// Opens the origin that this node writes to.
Result<OriginDir> open_origin(const DaemonParts& parts) {
  const std::string path = parts.config.get()->origin;
  if (path.empty()) return Error{Errc::unsupported, "this daemon has no origin configured"};
  if (!parts.store.cluster())
    return Error{Errc::unreachable, "etcd has not answered yet: this node does not know its cluster"};
  WEFT_TRY(const std::string known, parts.store.ledger().origin());
  return OriginDir::open_known(path, known, parts.store.cluster()->cluster);
}

Result<OriginGcReport> collect_at_origin(control::Call& call, const OriginGcRequest& request, DaemonParts& parts) {
  WEFT_CHECK(check_access(parts.config.get()->gc, call.peer(), "collect garbage at the origin"));
  CallProgress progress(call);
  const std::uint64_t grace_ns = std::min(request.grace_s, kGraceSecondsMax) * 1'000'000'000;
  const std::uint64_t horizon_ns = now_ns() - std::min(now_ns(), grace_ns);
  return collect_origin_now(parts, {horizon_ns, {}, request.dry_run, false, grace_ns}, progress);
}

// Gives the blobs and the journal of this node and, for blobs that it lacks, of other nodes.
class NodeRepairs final : public RepairSource {
 public:
  explicit NodeRepairs(DaemonParts& parts) : parts_(parts) {}
  Result<OpenPlace> blob(const ContentId& id, bool damaged, Progress& progress) override {
    Bytes& bytes = parts_.bytes;
    if (damaged) WEFT_CHECK(refetch_blob(bytes.store, bytes.store.cache(), bytes.fetcher, id, progress));
    return bring_blob(bytes.store, bytes.fetcher, id, progress);
  }
  Result<CatalogEvents> events(std::uint64_t from) override { return parts_.store.ledger().events(from); }

 private:
  DaemonParts& parts_;
};

Result<OriginFsckReport> check_at_origin(control::Call& call, const OriginFsckRequest& request, DaemonParts& parts) {
  WEFT_CHECK(check_access(parts.config.get()->gc, call.peer(), "check and repair the origin"));
  WEFT_TRY(OriginDir origin, open_origin(parts));
  CallProgress progress(call);
  RegistryOrder order(parts.registry, parts.store, parts.bytes.fetcher);
  NodeRepairs repairs(parts);
  // A blob is fetched through a version that has it, and a bare version is not known to. Its manifest may be out of
  // reach.
  if (request.repair) {
    WEFT_TRY(const auto unresolved, parts.bytes.resolve_all([&call] { return call.cancelled(); }));
    for (const auto& [version, error] : unresolved)
      log_warning("repair of the origin: {}: {}", spec_of(version.model_name, version.number), error.message);
  }
  return check_origin_files(std::move(origin), order, request.repair ? &repairs : nullptr, progress);
}

}  // namespace

Result<OriginGcReport> collect_origin_now(DaemonParts& parts, OriginGcOptions options, Progress& progress) {
  WEFT_TRY(OriginDir origin, open_origin(parts));
  RegistryOrder order(parts.registry, parts.store, parts.bytes.fetcher);
  options.purged = parts.registry.purged();
  return collect_origin(std::move(origin), order, options, progress);
}

void serve_origin(control::Server& server, DaemonParts& parts) {
  serve(server, parts, "restore", restore);
  serve(server, parts, "gc_origin", collect_at_origin);
  serve(server, parts, "fsck_origin", check_at_origin);
}

}  // namespace weft
