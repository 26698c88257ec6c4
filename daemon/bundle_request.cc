// Takes versions of a bundle over for a client. The client opens each file of the bundle, with its own rights.
#include <chrono>
#include <cstdint>
#include <string>

#include <fmt/core.h>

#include "base/log.h"
#include "base/text.h"
#include "control/call.h"
#include "daemon/access.h"
#include "daemon/parts.h"
#include "daemon/serve.h"
#include "daemon_api/call_progress.h"
#include "weft/programs/bundle.h"

namespace weft {
namespace {

constexpr std::uint64_t kBundleMemoryGuess = 256U << 20U;  // of one import, for ImportMemory
// Longest wait for a client that is stopped, or whose file system hangs.
constexpr auto kOpenPatience = std::chrono::minutes(5);
constexpr auto kBundleCatchUpMax = std::chrono::seconds(10);

Result<Fd> open_by_client(control::Call& call, const std::string& name) {
  WEFT_CHECK(call.event(encode_fields(BundleEvent{name})));
  WEFT_TRY(control::Message message, call.next(kOpenPatience));
  if (!message.fds.empty()) return std::move(message.fds.front());
  WEFT_TRY(OpenFailure failure, decode_fields<OpenFailure>(message.body));
  return std::move(failure.error);
}

// A version that relies on one in memory is in memory too: waits until both are on the disk.
Result<PublishOutcome> publish_one(Import& import, const PublishRequest& version, uid_t user, CallProgress& progress,
                                   DaemonParts& parts) {
  WEFT_TRY(PublishOutcome outcome, parts.registry.publish(import, version));
  audit_publish(outcome, user);
  if (outcome.in_memory)
    WEFT_CHECK(parts.memory.wait_for(outcome.version.id, [&progress] { return progress.cancelled(); }));
  return outcome;
}

Result<BundleImportReport> import_bundle(control::Call& call, const BundleImportRequest& request, DaemonParts& parts) {
  const auto config = parts.config.get();
  WEFT_CHECK(check_any_access(config->publish, call.peer(), "publish"));
  CallProgress progress(call);
  WEFT_TRY(const auto share,
           parts.import_memory.take(call.peer().uid, kBundleMemoryGuess, [&progress] { return progress.cancelled(); }));
  WEFT_CHECK(parts.registry.catch_up(Registry::Clock::now() + kBundleCatchUpMax));
  const BundleFiles files{printable(request.where), request.directory,
                          [&call](const std::string& name) { return open_by_client(call, name); }};
  const BundleTarget target{parts.store,
                            [&](Import& import, const PublishRequest& version) -> Result<PublishOutcome> {
                              WEFT_CHECK(check_access(config->publish, version.model, call.peer(), "publish"));
                              return publish_one(import, version, call.peer().uid, progress, parts);
                            },
                            [&](std::string_view model, std::string_view tag, std::uint64_t number) -> Status {
                              WEFT_CHECK(check_access(config->publish, model, call.peer(), "tag"));
                              WEFT_CHECK(parts.registry.set_tag(model, tag, number, author_of(call.peer())));
                              audit("tag", fmt::format("{} {}", spec_of(model, number), tag), call.peer().uid);
                              return {};
                            }};
  const auto report = import_bundle(target, files, request.options, progress);
  if (!request.options.dry_run) parts.write_behind();
  return report;
}

}  // namespace

void serve_bundles(control::Server& server, DaemonParts& parts) {
  serve(server, parts, "bundle", import_bundle);
}

}  // namespace weft
