// Tags, notes, renames, removals, undeletes and gc for a client.
#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "base/log.h"
#include "base/text.h"
#include "control/call.h"
#include "daemon/access.h"
#include "daemon/parts.h"
#include "daemon/serve.h"
#include "daemon_api/call_progress.h"
#include "daemon_api/changes.h"
#include "monitor/audit.h"
#include "os/sys.h"
#include "weft/cluster/origin.h"
#include "weft/programs/operations.h"
#include "weft/store/walk.h"

namespace weft {
namespace {

constexpr auto kCatchUpMax = std::chrono::seconds(10);  // longest wait for the registry before gc
constexpr auto kOriginPatience = std::chrono::seconds(10);

Result<VersionName> tag(control::Call& call, const TagRequest& request, DaemonParts& parts) {
  WEFT_CHECK(check_access(parts.config.get()->publish, model_in(request.spec), call.peer(), "tag"));
  const Author by = author_of(call.peer());
  WEFT_TRY(const VersionName tagged,
           change_tag(
               parts.store, request, [&](auto... change) { return parts.registry.set_tag(change..., by); },
               [&](auto... change) { return parts.registry.protect_tag(change..., by); }));
  parts.write_behind();
  return tagged;
}

Result<VersionName> note(control::Call& call, const NoteRequest& request, DaemonParts& parts) {
  WEFT_CHECK(check_access(parts.config.get()->publish, model_in(request.spec), call.peer(), "describe"));
  WEFT_TRY(const VersionName described, change_description(parts.store, request, [&](const auto&... change) {
             return parts.registry.describe(change...);
           }));
  parts.write_behind();
  return described;
}

Result<Nothing> rename(control::Call& call, const RenameRequest& request, DaemonParts& parts) {
  for (const std::string& name : {request.model, request.to})
    WEFT_CHECK(check_access(parts.config.get()->publish, name, call.peer(), "rename a model from or to"));
  WEFT_CHECK(change_name(parts.store, request,
                         [&](auto... names) { return parts.registry.rename_model(names..., author_of(call.peer())); }));
  return Nothing{};
}

// Holds versions that are about to be removed for gc_delay. Returns how many of them stay so: only the publisher of a
// version keeps its content, and it holds what is removed here.
std::size_t hold(DaemonParts& parts, std::span<const VersionName> versions) {
  std::size_t count = 0;
  const auto& cluster = parts.store.cluster();
  for (const VersionName& version : versions) {
    const auto row = version_of(parts.store, spec_of(version.model, version.number));
    if (!row.ok()) continue;
    auto held = parts.store.hold_version(row->id);
    if (!held.ok()) continue;
    parts.auto_gc.removed(row->id, std::move(*held));
    if (!cluster || row->publisher == cluster->node) ++count;
  }
  return count;
}

// Reports each removal at once, because a later removal may fail.
Result<RemoveReport> remove(control::Call& call, const RemoveRequest& request, DaemonParts& parts) {
  const auto config = parts.config.get();
  for (const std::string& spec : request.specs)
    WEFT_CHECK(check_access(config->remove, model_in(spec), call.peer(), "remove versions of"));
  const Author by = author_of(call.peer());
  const std::uint64_t until_ns =
      now_ns() + static_cast<std::uint64_t>(std::chrono::nanoseconds(config->gc_delay).count());
  std::set<VersionName> held;
  bool all = !request.dry_run;
  const RemoveSome remove_some = [&](std::span<const VersionName> versions, Tagged tagged) {
    all = hold(parts, versions) == versions.size() && all;
    held.insert(versions.begin(), versions.end());
    auto count = parts.registry.remove_versions(versions, tagged, by);
    parts.write_behind();
    return count;
  };
  const auto removed = [&](const VersionName& version) -> Status {
    if (!request.dry_run) audit("remove", spec_of(version.model, version.number), call.peer().uid);
    return call.event(encode_fields(version));
  };
  WEFT_CHECK(remove_versions(parts.store, request, remove_some, removed));
  return RemoveReport{all && !held.empty() && held.size() <= AutoGc::kHeldMax ? until_ns : 0};
}

// True if the origin has the content. False if the origin does not answer: this node may have it.
bool is_at_origin(const DaemonParts& parts, const Digest& manifest) {
  const std::string origin = parts.config.get()->origin;
  if (origin.empty() || !parts.store.cluster()) return false;
  const auto known = parts.store.ledger().origin();
  const auto there = known.ok()
                         ? weft::is_at_origin(origin, *known, parts.store.cluster()->cluster, manifest, kOriginPatience)
                         : Result<bool>(false);
  return there.ok() && *there;
}

Result<Nothing> undelete(control::Call& call, const UndeleteRequest& request, DaemonParts& parts) {
  for (const std::string& spec : request.specs)
    WEFT_CHECK(check_access(parts.config.get()->remove, model_in(spec), call.peer(), "bring back versions of"));
  const Author by = author_of(call.peer());
  const Undelete undelete_one = [&](std::string_view model, std::uint64_t number) {
    return parts.registry.undelete(
        model, number, [&](const Digest& manifest) { return is_at_origin(parts, manifest); }, by);
  };
  const auto undeleted = [&](const UndeletedVersion& version) -> Status {
    parts.write_behind();
    parts.memory.wake();  // its bytes may be in memory alone
    const std::string name = spec_of(version.model, version.number);
    if (const auto row = version_of(parts.store, name); row.ok()) parts.auto_gc.undeleted(row->id);
    audit("undelete", name, call.peer().uid);
    return call.event(encode_fields(version));
  };
  WEFT_CHECK(undelete_versions(request, undelete_one, undeleted));
  return Nothing{};
}

Result<GcOutcome> collect(control::Call& call, const GcOptions& request, DaemonParts& parts) {
  WEFT_CHECK(check_access(parts.config.get()->gc, call.peer(), "collect garbage"));
  CallProgress progress(call);
  const auto collect_now = [&] {
    return collect_all(
        parts, request, [&call] { return call.cancelled(); }, progress);
  };
  if (!request.dry_run) {
    parts.auto_gc.release();
    return collect_now();
  }
  std::optional<Result<GcOutcome>> outcome;
  parts.auto_gc.run_without([&] { outcome.emplace(collect_now()); });
  return *std::move(outcome);
}

// Returns a command that gives an unresolved version its manifest, or the version up.
std::string resolving_command(const DaemonParts& parts, const VersionRow& version) {
  const auto members = parts.registry.members();
  if (std::ranges::find(members, version.publisher, &Member::node) != members.end()) return "weft health";
  const std::string name = name_of_node(parts.registry, version.publisher);
  return fmt::format("start weftd on {}, or `weft rm {}`", name, spec_of(version));
}

Result<std::vector<UndecidedVersion>> undecided_versions(DaemonParts& parts, const std::function<bool()>& cancelled) {
  WEFT_TRY(const auto unresolved, parts.bytes.resolve_all(cancelled));
  std::vector<UndecidedVersion> out;
  for (const auto& [version, error] : unresolved)
    out.push_back({spec_of(version), fmt::format("its content is unknown: {}", error.message),
                   resolving_command(parts, version)});
  return out;
}

}  // namespace

// Waits for the registry first, so that gc sees every removal that was committed before the request.
Result<GcOutcome> collect_all(DaemonParts& parts, const GcOptions& request, const std::function<bool()>& cancelled,
                              Progress& progress) {
  GcOptions options = request;
  const auto revision = parts.registry.catch_up(Registry::Clock::now() + kCatchUpMax);
  GcOutcome outcome;
  if (revision.ok()) {
    options.registry_revision = *revision;
    WEFT_TRY(outcome.undecided, undecided_versions(parts, cancelled));
  } else {
    const Errc code = revision.error().code;
    if (code != Errc::unreachable && code != Errc::timed_out) return revision.error();
    outcome.undecided.push_back({"", fmt::format("removals are unknown: {}", revision.error().message), "weft health"});
  }
  const auto drafts_kept = parts.config.get()->drafts_keep;
  if (outcome.undecided.empty()) return collect_garbage(parts.store, options, drafts_kept, progress);
  WEFT_CHECK(collect_unversioned(parts.store, options.dry_run, drafts_kept, outcome));
  return outcome;
}

void serve_changes(control::Server& server, DaemonParts& parts) {
  serve(server, parts, "tag", tag);
  serve(server, parts, "note", note);
  serve(server, parts, "mv", rename);
  serve(server, parts, "rm", remove);
  serve(server, parts, "undelete", undelete);
  serve(server, parts, "gc", collect);
}

}  // namespace weft
