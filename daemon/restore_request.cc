// Restores the names of a lost registry from the origin.
#include <algorithm>
#include <chrono>
#include <set>
#include <string>
#include <variant>

#include <fmt/core.h>

#include "base/log.h"
#include "control/call.h"
#include "daemon/access.h"
#include "daemon/call_progress.h"
#include "daemon/parts.h"
#include "daemon/serve.h"

namespace weft {
namespace {

constexpr auto kRestoreCatchUpMax = std::chrono::seconds(10);
constexpr std::size_t kLinesMax = 200;  // lines of each list in the answer

const std::string& model_of(const MirrorChange& change) {
  if (const auto* version = std::get_if<MirroredVersion>(&change)) return version->version.model_name;
  if (const auto* tag = std::get_if<MirroredTag>(&change)) return tag->model;
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

// Requires the rights to publish and to remove.
Result<RestoreReport> restore(control::Call& call, const RestoreRequest& request, DaemonParts& parts) {
  const auto config = parts.config.get();
  WEFT_CHECK(check_access(config->publish, call.peer(), "restore the registry"));
  WEFT_CHECK(check_access(config->remove, call.peer(), "restore the registry"));
  if (!config->clustered()) return Error{Errc::unsupported, "this daemon has no registry but its store"};
  if (config->origin.empty()) return Error{Errc::unsupported, "this daemon has no origin configured"};
  CallProgress progress(call);
  WEFT_TRY(OriginRegistry found, registry_at_origin(config->origin, request.accept_loss, Publishers::origin, progress));
  const bool refused = found.report.refused;
  WEFT_TRY(const RestoreReport report, Returning(parts.registry, std::move(found), progress).run());
  WEFT_CHECK(parts.registry.catch_up(Registry::Clock::now() + kRestoreCatchUpMax));
  if (!refused && parts.store.cluster()) WEFT_CHECK(take_over_origin(config->origin, parts.store.cluster()->cluster));
  if (parts.bytes.behind) parts.bytes.behind->wake();
  log_info("registry restored from {} by user {}", config->origin, call.peer().uid);
  return report;
}

}  // namespace

void serve_restore(control::Server& server, DaemonParts& parts) {
  serve(server, parts, "restore", restore);
}

}  // namespace weft
