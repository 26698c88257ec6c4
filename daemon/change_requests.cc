// Tags, notes, renames, removals and gc for a client.
#include <chrono>
#include <optional>

#include "base/log.h"
#include "control/call.h"
#include "daemon/access.h"
#include "daemon/call_progress.h"
#include "daemon/parts.h"
#include "daemon/serve.h"
#include "daemon_api/changes.h"
#include "weft/store/walk.h"

namespace weft {
namespace {

constexpr auto kCatchUpMax = std::chrono::seconds(10);  // longest wait for the registry before gc

// Wakes the write-behind thread: it writes the change to the origin.
void changed(const DaemonParts& parts) {
  if (parts.bytes.behind) parts.bytes.behind->wake();
}

Result<VersionName> tag(control::Call& call, const TagRequest& request, DaemonParts& parts) {
  WEFT_CHECK(check_access(parts.config.get()->publish, call.peer(), "tag versions"));
  WEFT_TRY(const VersionName tagged, change_tag(parts.store, request, [&](auto... change) {
             return parts.registry.set_tag(change..., author_of(call.peer()));
           }));
  changed(parts);
  return tagged;
}

Result<VersionName> note(control::Call& call, const NoteRequest& request, DaemonParts& parts) {
  WEFT_CHECK(check_access(parts.config.get()->publish, call.peer(), "describe versions"));
  WEFT_TRY(const VersionName described, change_description(parts.store, request, [&](const auto&... change) {
             return parts.registry.describe(change...);
           }));
  changed(parts);
  return described;
}

Result<Nothing> rename(control::Call& call, const RenameRequest& request, DaemonParts& parts) {
  WEFT_CHECK(check_access(parts.config.get()->publish, call.peer(), "rename models"));
  WEFT_CHECK(change_name(parts.store, request, [&](auto... names) { return parts.registry.rename_model(names...); }));
  log_info("{} renamed to {} by user {}", request.model, request.to, call.peer().uid);
  return Nothing{};
}

// Holds versions that are about to be removed for gc_delay.
void hold(DaemonParts& parts, std::span<const VersionName> versions) {
  for (const VersionName& version : versions) {
    const auto row = version_of(parts.store, spec_of(version.model, version.number));
    if (!row.ok()) continue;
    if (auto held = parts.store.hold_version(row->id); held.ok()) parts.auto_gc.removed(row->id, std::move(*held));
  }
}

// Reports each removal at once, because a later removal may fail.
Result<Nothing> remove(control::Call& call, const RemoveRequest& request, DaemonParts& parts) {
  WEFT_CHECK(check_access(parts.config.get()->remove, call.peer(), "remove versions"));
  const Author by = author_of(call.peer());
  const RemoveSome remove_some = [&](std::span<const VersionName> versions, Tagged tagged) {
    hold(parts, versions);
    auto count = parts.registry.remove_versions(versions, tagged, by);
    changed(parts);
    return count;
  };
  const auto removed = [&](const VersionName& version) -> Status {
    if (!request.dry_run) log_info("{} removed by user {}", spec_of(version.model, version.number), call.peer().uid);
    return call.event(encode_fields(version));
  };
  WEFT_CHECK(remove_versions(parts.store, request, remove_some, removed));
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
  std::optional<Result<GcOutcome>> looked;
  parts.auto_gc.run_without([&] { looked.emplace(collect_now()); });
  return *std::move(looked);
}

}  // namespace

// Waits for the registry first, so that gc sees every removal that was committed before the request.
Result<GcOutcome> collect_all(DaemonParts& parts, const GcOptions& request, const std::function<bool()>& cancelled,
                              Progress& progress) {
  GcOptions options = request;
  WEFT_TRY(options.registry_revision, parts.registry.catch_up(Registry::Clock::now() + kCatchUpMax));
  WEFT_CHECK(parts.bytes.resolve_all(cancelled));
  return collect_garbage(parts.store, options, parts.config.get()->drafts_keep, progress);
}

void serve_changes(control::Server& server, DaemonParts& parts) {
  serve(server, parts, "tag", tag);
  serve(server, parts, "note", note);
  serve(server, parts, "mv", rename);
  serve(server, parts, "rm", remove);
  serve(server, parts, "gc", collect);
}

}  // namespace weft
