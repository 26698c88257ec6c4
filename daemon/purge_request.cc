// Purges versions for a client.
#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "control/call.h"
#include "daemon/access.h"
#include "daemon/parts.h"
#include "daemon/serve.h"
#include "daemon_api/call_progress.h"
#include "monitor/audit.h"
#include "weft/model/manifest.h"
#include "weft/programs/operations.h"
#include "weft/store/walk.h"

namespace weft {
namespace {

constexpr std::size_t kSharersMax = 8;  // named in the report

// Purges versions: removes them, records the purge, and frees their content on this node and at the origin. The other
// nodes act on the record. May be repeated after a failure.
class Purging {
 public:
  Purging(DaemonParts& parts, const PurgeRequest& request, const PeerCredentials& peer, Progress& progress)
      : parts_(parts), request_(request), user_(peer.uid), by_(author_of(peer)), progress_(progress) {}

  Result<PurgeReport> run() {
    WEFT_CHECK(resolve());
    for (const VersionRow& row : rows_) report_.purged.push_back({row.model_name, row.number});
    // Only a version whose manifest is here can be found by its blobs.
    WEFT_CHECK(parts_.bytes.resolve_all([this] { return progress_.cancelled(); }));
    for (const VersionRow& row : rows_) read_content(row);
    report_.shared_with.assign(sharers_.begin(), sharers_.end());
    find_nodes();
    if (request_.dry_run) return report_;
    for (const VersionRow& row : rows_) WEFT_CHECK(take_down(row));
    free_content();
    return report_;
  }

 private:
  Status resolve() {
    std::set<VersionId> known;
    const auto add = [&](VersionRow row) -> Status {
      if (known.insert(row.id).second) rows_.push_back(std::move(row));
      return {};
    };
    for (const std::string& spec : request_.specs) {
      const std::size_t at = spec.find('@');
      WEFT_TRY(const ModelRow model, model_of(parts_.store, spec.substr(0, at)));
      if (at == std::string::npos) {
        WEFT_CHECK(each_row(parts_.store, list_versions(model.id), add));
        continue;
      }
      const auto number = parse_u64(std::string_view(spec).substr(at + 1));
      auto row = number ? removed_version(model, *number) : version_of(parts_.store, spec);
      if (!row.ok()) return row.error();
      WEFT_CHECK(add(*std::move(row)));
    }
    return {};
  }

  Result<VersionRow> removed_version(const ModelRow& model, std::uint64_t number) {
    WEFT_TRY(const auto snapshot, parts_.store.snapshot());
    return snapshot->version(model.id, number);
  }

  // Adds the blobs of this version. A version without a manifest in reach may have blobs in every pack of the origin.
  void read_content(const VersionRow& row) {
    const auto bytes =
        row.removed ? parts_.store.open_manifest(row.manifest) : manifest_of(parts_.store, parts_.bytes.fetcher, row);
    const auto manifest = bytes.ok() ? decode_manifest((*bytes)->bytes()) : Result<Manifest>(bytes.error());
    if (!manifest.ok()) return blobs_.reset();
    if (blobs_)
      for (const File& file : manifest->files)
        for (const Extent& extent : file.extents) blobs_->insert(extent.id);
    find_sharers(*manifest);
  }

  // Adds live versions that have bytes of this one.
  void find_sharers(const Manifest& manifest) {
    for (const File& file : manifest.files)
      for (const Extent& extent : file.extents) {
        if (sharers_.size() >= kSharersMax) return;
        const auto holders = some_holding_files(parts_.store, extent.id, kSharersMax);
        if (!holders.ok()) continue;
        for (const auto& [holder, index] : *holders) {
          VersionName name{holder.model_name, holder.number};
          if (!holder.removed && std::ranges::find(report_.purged, name) == report_.purged.end())
            sharers_.insert(std::move(name));
        }
      }
  }

  void find_nodes() {
    if (!parts_.store.cluster()) return;
    std::set<std::string> known{parts_.store.cluster()->node};
    for (const KnownNode& node : parts_.registry.nodes())
      if (known.insert(node.node).second) (node.present ? report_.nodes : report_.absent).push_back(node.name);
    for (const VersionRow& row : rows_)
      if (!row.publisher.empty() && known.insert(row.publisher).second)
        report_.absent.push_back(name_of_node(parts_.registry, row.publisher));
  }

  // Reports each version at once, because a later one may fail.
  Status take_down(const VersionRow& row) {
    const VersionName name{row.model_name, row.number};
    if (!row.removed)
      WEFT_CHECK(parts_.registry.remove_versions(std::span(&name, 1),
                                                 request_.force ? Tagged::removed : Tagged::refused, by_, row.uid));
    Status purged = parts_.store.cluster() ? parts_.registry.purge({name, row.uid, 0, by_}) : Status{};
    if (purged.ok() || !row.removed) audit(purged.ok() ? "purge" : "remove", spec_of(row), user_);
    return purged;
  }

  // The next gc frees the content that is not freed here.
  void free_content() {
    for (const VersionRow& row : rows_) parts_.auto_gc.undeleted(row.id);
    const auto here = collect_all(
        parts_, {.all = true}, [this] { return progress_.cancelled(); }, progress_);
    if (here.ok())
      report_.bytes_freed = here->report.disk_bytes_freed;
    else
      report_.problems.push_back("content stays on this node until the next gc: " + here.error().message);
    if (here.ok() && here->report.versions_open > 0)
      report_.problems.push_back("a reader has a version open on this node: gc frees its content afterwards");
    if (!parts_.store.cluster() || parts_.config.get()->origin.empty()) return;
    OriginGcOptions options;
    options.all = true;
    options.blobs = std::move(blobs_);
    const auto there = collect_origin_now(parts_, std::move(options), progress_);
    if (there.ok()) {
      report_.origin_bytes_freed = there->bytes_freed;
      report_.origin_dead_bytes = there->dead_bytes;
      if (there->packs_spared > 0)
        report_.problems.push_back(
            "content stays at the origin until all versions are there (weft stage-out): `weft gc --origin` frees it");
    } else {
      report_.problems.push_back("content stays at the origin until `weft gc --origin`: " + there.error().message);
    }
  }

  DaemonParts& parts_;
  const PurgeRequest& request_;
  const uid_t user_;
  const Author by_;
  Progress& progress_;
  std::vector<VersionRow> rows_;
  std::set<VersionName> sharers_;
  std::optional<std::set<ContentId>> blobs_{std::in_place};  // of all versions; nothing: some are unknown
  PurgeReport report_;
};

Result<PurgeReport> purge(control::Call& call, const PurgeRequest& request, DaemonParts& parts) {
  for (const std::string& spec : request.specs)
    WEFT_CHECK(check_access(parts.config.get()->remove, model_in(spec), call.peer(), "purge versions of"));
  CallProgress progress(call);
  WEFT_TRY(PurgeReport report, Purging(parts, request, call.peer(), progress).run());
  parts.write_behind();
  return report;
}

}  // namespace

void serve_purge(control::Server& server, DaemonParts& parts) {
  serve(server, parts, "purge", purge);
}

}  // namespace weft
