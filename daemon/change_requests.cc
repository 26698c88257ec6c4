// Tags, removals and gc for a client.
#include <chrono>

#include "base/json.h"
#include "base/log.h"
#include "control/call.h"
#include "daemon/access.h"
#include "daemon/call_progress.h"
#include "daemon/parts.h"
#include "daemon_api/control_messages.h"
#include "query/removal.h"
#include "weft/gc.h"
#include "weft/manifest.h"
#include "weft/node.h"

namespace weft {
namespace {

constexpr auto kCatchUpMax = std::chrono::seconds(10);  // for the registry, before gc

std::string version_json(std::string_view model, std::uint64_t number) {
  JsonWriter json;
  json.begin_object().member("model", model).member("version", number).end_object();
  return json.take();
}

// What is said of names goes to the origin too, soon.
void changed(const DaemonParts& parts) {
  if (parts.bytes.behind) parts.bytes.behind->look_again();
}

Result<std::string> delete_tag(DaemonParts& parts, const std::string& model, const std::string& tag) {
  WEFT_CHECK(check_model_name(model));
  {
    WEFT_TRY(const auto snapshot, parts.store.snapshot());
    if (auto row = snapshot->model(model); !row.ok()) {
      WEFT_CHECK(resolve_version(*snapshot, model));  // its error says which models there are
      return std::move(row).error();
    }
  }
  WEFT_CHECK(parts.registry.set_tag(model, tag, std::nullopt));
  changed(parts);
  return version_json(model, 0);
}

Result<std::string> tag(control::Call& call, DaemonParts& parts) {
  WEFT_CHECK(check_access(parts.config.get()->publish, call.peer(), "tag versions"));
  WEFT_TRY(const std::string spec, call.body().text("spec"));
  WEFT_TRY(const std::string name, call.body().text("tag"));
  WEFT_TRY(const bool goes, call.body().flag("delete"));
  WEFT_CHECK(check_tag_name(name));
  if (goes) return delete_tag(parts, spec, name);
  WEFT_TRY(const VersionRow row, ([&]() -> Result<VersionRow> {
             WEFT_TRY(const auto snapshot, parts.store.snapshot());
             return resolve_version(*snapshot, spec);
           })());
  WEFT_CHECK(parts.registry.set_tag(row.model_name, name, row.number));
  changed(parts);
  return version_json(row.model_name, row.number);
}

// Each removal is told as it happens: what comes after may fail.
Result<std::string> remove(control::Call& call, DaemonParts& parts) {
  WEFT_CHECK(check_access(parts.config.get()->remove, call.peer(), "remove versions"));
  WEFT_TRY(const auto specs, call.body().texts("specs"));
  WEFT_TRY(const bool all, call.body().flag("all"));
  WEFT_TRY(const auto rows, versions_to_remove(parts.store, specs, all));
  for (const VersionRow& row : rows) {
    WEFT_CHECK(parts.registry.remove_version(row.model_name, row.number));
    changed(parts);
    log_info("{} removed by user {}", spec_of(row.model_name, row.number), call.peer().uid);
    WEFT_CHECK(call.event(version_json(row.model_name, row.number)));
  }
  return std::string("{}");
}

// What may be freed is judged by a state of the registry that is newer than any removal before the request.
Result<std::string> collect(control::Call& call, DaemonParts& parts) {
  WEFT_CHECK(check_access(parts.config.get()->gc, call.peer(), "collect garbage"));
  GcOptions options;
  WEFT_TRY(options.dry_run, call.body().flag("dry_run"));
  WEFT_TRY(options.all, call.body().flag("all"));
  WEFT_TRY(options.registry_revision, parts.registry.catch_up(Registry::Clock::now() + kCatchUpMax));
  WEFT_CHECK(parts.bytes.look_at_all([&call] { return call.cancelled(); }));
  CallProgress progress(call);
  GcOutcome outcome;
  WEFT_TRY(outcome.report, parts.store.gc(options, progress));
  WEFT_TRY(outcome.swept, sweep_assembled(parts.store, options.dry_run));
  return encode_gc(outcome);
}

void serve(control::Server& server, DaemonParts& parts, const std::string& name,
           Result<std::string> (*handle)(control::Call&, DaemonParts&)) {
  server.on(name, control::Runs::own_thread,
            [&parts, handle](const std::shared_ptr<control::Call>& call) { reply(*call, handle(*call, parts)); });
}

}  // namespace

void serve_changes(control::Server& server, DaemonParts& parts) {
  serve(server, parts, "tag", tag);
  serve(server, parts, "rm", remove);
  serve(server, parts, "gc", collect);
}

}  // namespace weft
