// Tags, removals and gc for a client.
#include <chrono>

#include "base/log.h"
#include "control/call.h"
#include "daemon/access.h"
#include "daemon/call_progress.h"
#include "daemon/parts.h"
#include "daemon/serve.h"
#include "daemon_api/changes.h"

namespace weft {
namespace {

constexpr auto kCatchUpMax = std::chrono::seconds(10);  // for the registry, before gc

// What is said of names goes to the origin too, soon.
void changed(const DaemonParts& parts) {
  if (parts.bytes.behind) parts.bytes.behind->look_again();
}

Result<VersionName> tag(control::Call& call, const TagRequest& request, DaemonParts& parts) {
  WEFT_CHECK(check_access(parts.config.get()->publish, call.peer(), "tag versions"));
  WEFT_TRY(const VersionName tagged,
           change_tag(parts.store, request, [&](auto... change) { return parts.registry.set_tag(change...); }));
  changed(parts);
  return tagged;
}

// Each removal is told as it happens: what comes after may fail.
Result<Nothing> remove(control::Call& call, const RemoveRequest& request, DaemonParts& parts) {
  WEFT_CHECK(check_access(parts.config.get()->remove, call.peer(), "remove versions"));
  const RemoveSome remove_some = [&](std::span<const VersionName> versions) {
    auto count = parts.registry.remove_versions(versions);
    changed(parts);
    return count;
  };
  const auto removed = [&](const VersionName& version) -> Status {
    log_info("{} removed by user {}", spec_of(version.model, version.number), call.peer().uid);
    return call.event(encode_fields(version));
  };
  WEFT_CHECK(remove_versions(parts.store, request, remove_some, removed));
  return Nothing{};
}

// What may be freed is judged by a state of the registry that is newer than any removal before the request.
Result<GcOutcome> collect(control::Call& call, const GcOptions& request, DaemonParts& parts) {
  WEFT_CHECK(check_access(parts.config.get()->gc, call.peer(), "collect garbage"));
  GcOptions options = request;
  WEFT_TRY(options.registry_revision, parts.registry.catch_up(Registry::Clock::now() + kCatchUpMax));
  WEFT_CHECK(parts.bytes.look_at_all([&call] { return call.cancelled(); }));
  CallProgress progress(call);
  return collect_garbage(parts.store, options, progress);
}

}  // namespace

void serve_changes(control::Server& server, DaemonParts& parts) {
  serve(server, parts, "tag", tag);
  serve(server, parts, "rm", remove);
  serve(server, parts, "gc", collect);
}

}  // namespace weft
