// What mounts and the command line ask about bytes.
#include <fmt/core.h>

#include "base/json.h"
#include "control/call.h"
#include "daemon/access.h"
#include "daemon/bytes.h"
#include "daemon/call_progress.h"
#include "daemon/parts.h"
#include "daemon_api/cold_wire.h"
#include "fetch/refetch.h"
#include "fetch/version.h"
#include "origin/hand_over.h"
#include "weft/fsck.h"
#include "weft/node.h"
#include "weft/origin.h"

namespace weft {
namespace {

constexpr auto kOriginPatience = std::chrono::seconds(10);

Result<VersionRow> version_of(Bytes& bytes, const control::Call& call) {
  WEFT_TRY(const std::string spec, call.body().text("spec"));
  WEFT_TRY(const auto snapshot, bytes.store.snapshot());
  return resolve_version(*snapshot, spec);
}

Result<std::string> look(control::Call& call, Bytes& bytes) {
  WEFT_TRY(const std::uint64_t version, call.body().number("version"));
  WEFT_CHECK(bytes.fetcher.look(version));
  return std::string("{}");
}

Result<std::string> cold(control::Call& /*call*/, Bytes& bytes) {
  return encode_cold_advice(bytes.fetcher.advice());
}

// Answers by itself: descriptors go with it.
void bring(control::Call& call, Bytes& bytes) {
  auto answer = [&]() -> Result<ColdAnswer> {
    WEFT_TRY(const ColdRange what, decode_cold_range(call.body()));
    WEFT_TRY(const auto pieces, bytes.fetcher.bring(what));
    return encode_cold_pieces(pieces);
  }();
  if (!answer.ok()) return call.fail(answer.error());
  call.answer(answer->body, std::move(answer->fds));
}

Result<std::string> prefetch(control::Call& call, Bytes& bytes) {
  WEFT_TRY(const VersionRow row, version_of(bytes, call));
  WEFT_TRY(const std::string layers, call.body().text_or("layers", ""));
  CallProgress progress(call);
  WEFT_TRY(const FetchReport report, fetch_version(bytes.store, bytes.fetcher, row, layers, progress));
  JsonWriter json;
  json.begin_object().member("files", report.files).member("bytes", report.bytes);
  json.member("moved_bytes", report.moved_bytes).end_object();
  return json.take();
}

Result<std::string> pin(control::Call& call, Bytes& bytes) {
  WEFT_CHECK(check_access(bytes.config.get()->publish, call.peer(), "pin versions"));
  WEFT_TRY(const VersionRow row, version_of(bytes, call));
  WEFT_TRY(const bool pinned, call.body().flag("pinned"));
  WEFT_CHECK(bytes.store.pin(row.model_name, row.number, pinned));
  return std::string("{}");
}

Result<std::string> evict(control::Call& call, Bytes& bytes) {
  WEFT_CHECK(check_access(bytes.config.get()->gc, call.peer(), "evict bytes"));
  EvictOptions options;
  if (call.body().find("spec") != nullptr) {
    WEFT_TRY(const VersionRow row, version_of(bytes, call));
    options.version = row.id;
  }
  WEFT_TRY(options.disk_bytes_max, call.body().number_or("bytes_max", 0));
  WEFT_TRY(options.dry_run, call.body().flag_or("dry_run", false));
  if (!options.dry_run) bytes.fetcher.let_go();
  WEFT_TRY(const EvictReport report, bytes.store.evict(options));
  if (!options.dry_run && bytes.peers != nullptr) bytes.peers->evicted();
  JsonWriter json;
  json.begin_object().member("packs", report.packs).member("disk_bytes", report.disk_bytes);
  json.member("kept_bytes", report.kept_bytes).member("pinned_bytes", report.pinned_bytes);
  json.member("busy_bytes", report.busy_bytes).end_object();
  return json.take();
}

// What has become cache may be more than that has room for.
Result<HandOverReport> make_cache(control::Call& call, Bytes& bytes, std::optional<VersionId> version) {
  HandOverOptions options;
  options.origin = bytes.config.get()->origin;
  options.version = version;
  options.cancelled = [&call] { return call.cancelled(); };
  auto report = hand_over(bytes.store, options);
  bytes.configure();
  return report;
}

Result<ContentId> blob_of(const control::Call& call) {
  ContentId id;
  WEFT_TRY(id.length, call.body().number("length"));
  WEFT_TRY(const std::string root, call.body().text("root"));
  const auto digest = digest_from_hex(root);
  if (!digest || id.length == 0) return Error{Errc::invalid, "expected the length and the root of a blob"};
  id.root = *digest;
  return id;
}

// A damaged blob is stored again: from the descriptor that the client sent, else from the origin or a peer.
Result<std::string> repair(control::Call& call, Bytes& bytes) {
  WEFT_CHECK(check_access(bytes.config.get()->gc, call.peer(), "repair blobs"));
  WEFT_TRY(const ContentId id, blob_of(call));
  CallProgress progress(call);
  const std::vector<Fd> fds = call.take_fds();
  if (fds.empty()) {
    WEFT_CHECK(refetch_blob(bytes.store, bytes.fetcher, id, progress));
    return std::string("{}");
  }
  WEFT_TRY(const std::uint64_t offset, call.body().number("offset"));
  WEFT_TRY(const struct stat st, stat_fd(fds.front().get(), "repair"));
  if (!S_ISREG(st.st_mode)) return Error{Errc::invalid, "repair: expected a regular file"};
  WEFT_TRY(const auto repair, bytes.store.begin_repair());
  WEFT_CHECK(repair->add(id, fds.front().get(), offset, "the file that the client sent", progress));
  WEFT_CHECK(repair->commit());
  return std::string("{}");
}

Result<std::string> stage_out(control::Call& call, Bytes& bytes) {
  if (!bytes.behind) return Error{Errc::unsupported, "this daemon has no origin configured"};
  WEFT_TRY(const bool evictable, call.body().flag_or("evictable", false));
  if (evictable) WEFT_CHECK(check_access(bytes.config.get()->gc, call.peer(), "make bytes evictable"));
  const auto cancelled = [&call] { return call.cancelled(); };
  WEFT_TRY(const bool take_new, call.body().flag_or("new_origin", false));
  if (take_new) {
    WEFT_CHECK(check_access(bytes.config.get()->gc, call.peer(), "take another origin"));
    WEFT_CHECK(bytes.behind->take_new_origin(cancelled));
  }
  std::optional<VersionId> version;
  if (call.body().find("spec") != nullptr) {
    WEFT_TRY(const VersionRow row, version_of(bytes, call));
    version = row.id;
    WEFT_CHECK(bytes.behind->wait_for(row.id, cancelled));
  } else {
    WEFT_CHECK(bytes.behind->wait(cancelled));
  }
  HandOverReport report;
  if (evictable) {
    WEFT_TRY(report, make_cache(call, bytes, version));
  }
  JsonWriter json;
  json.begin_object().member("packs", report.packs).member("disk_bytes", report.disk_bytes);
  json.member("kept_packs", report.kept_packs).member("kept_disk_bytes", report.kept_disk_bytes).end_object();
  return json.take();
}

Result<std::string> origin(control::Call& /*call*/, Bytes& bytes) {
  const std::string path = bytes.config.get()->origin;
  if (path.empty()) return Error{Errc::unsupported, "this daemon has no origin configured"};
  WEFT_TRY(const OriginTotals totals, origin_totals(path, kOriginPatience));
  JsonWriter json;
  json.begin_object().member("path", path).member("packs", totals.packs).member("bytes", totals.bytes);
  json.member("manifests", totals.manifests).member("versions", totals.versions);
  json.member("waiting", bytes.behind ? bytes.behind->status().waiting : 0).end_object();
  return json.take();
}

void serve(control::Server& server, Bytes& bytes, const std::string& name,
           Result<std::string> (*handle)(control::Call&, Bytes&)) {
  server.on(name, control::Runs::own_thread,
            [&bytes, handle](const std::shared_ptr<control::Call>& call) { reply(*call, handle(*call, bytes)); });
}

}  // namespace

void serve_bytes(control::Server& server, Bytes& bytes) {
  serve(server, bytes, "look", look);
  server.on("bring", control::Runs::own_thread,
            [&bytes](const std::shared_ptr<control::Call>& call) { bring(*call, bytes); });
  serve(server, bytes, "cold", cold);
  serve(server, bytes, "prefetch", prefetch);
  serve(server, bytes, "pin", pin);
  serve(server, bytes, "evict", evict);
  serve(server, bytes, "repair", repair);
  serve(server, bytes, "stage_out", stage_out);
  serve(server, bytes, "origin", origin);
}

}  // namespace weft
