// Requests of mounts and of the command line about bytes.
#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/core.h>

#include "control/call.h"
#include "daemon/access.h"
#include "daemon/bytes.h"
#include "daemon/serve.h"
#include "daemon_api/call_progress.h"
#include "daemon_api/changes.h"
#include "daemon_api/cold_wire.h"
#include "fetch/requests/refetch.h"
#include "fetch/requests/version.h"
#include "origin/hand_over.h"
#include "weft/cluster/origin.h"
#include "weft/programs/operations.h"
#include "weft/store/fsck.h"
#include "weft/store/walk.h"

namespace weft {
namespace {

constexpr auto kReadOriginPatience = std::chrono::seconds(10);
constexpr std::uint64_t kStageOutSecondsMax = 365ULL * 86'400;

Result<Nothing> resolve(control::Call& /*call*/, const ResolveRequest& request, Bytes& bytes) {
  WEFT_CHECK(bytes.fetcher.resolve(request.version));
  return Nothing{};
}

Result<ColdAdvice> cold(control::Call& /*call*/, const Nothing& /*request*/, Bytes& bytes) {
  return bytes.fetcher.advice();
}

// Sends its answer itself, because serve() cannot send descriptors.
void bring(control::Call& call, Bytes& bytes) {
  auto answer = [&]() -> Result<ColdAnswer> {
    WEFT_TRY(const ColdRange what, decode_fields<ColdRange>(call.body()));
    WEFT_TRY(const auto pieces, bytes.fetcher.bring(what));
    return encode_cold_pieces(pieces);
  }();
  if (!answer.ok()) return call.fail(answer.error());
  call.answer(answer->body, std::move(answer->fds));
}

Result<FetchReport> prefetch(control::Call& call, const PrefetchRequest& request, Bytes& bytes) {
  WEFT_TRY(const VersionRow row, version_of(bytes.store, request.spec));
  CallProgress progress(call);
  progress.names_rate([&bytes] { return bytes.gate->held_by(Traffic::ahead); });
  const PaceFigures before = bytes.gate->figures();
  WEFT_TRY(FetchReport report, fetch_version(bytes.store, bytes.fetcher, row, request.layers, progress));
  report.held_by = held_most(before, bytes.gate->figures(), Traffic::ahead);
  return report;
}

Result<Nothing> pin(control::Call& call, const PinRequest& request, Bytes& bytes) {
  WEFT_CHECK(
      check_access(bytes.config.get()->publish, request.spec.substr(0, request.spec.find('@')), call.peer(), "pin"));
  WEFT_CHECK(change_pin(bytes.store, request));
  return Nothing{};
}

Result<EvictReport> evict(control::Call& call, const EvictRequest& request, Bytes& bytes) {
  WEFT_CHECK(check_access(bytes.config.get()->gc, call.peer(), "evict bytes"));
  EvictOptions options;
  options.disk_bytes_max = request.bytes_max;
  options.dry_run = request.dry_run;
  if (!request.spec.empty()) {
    WEFT_TRY(const VersionRow row, version_of(bytes.store, request.spec));
    options.version = row.id;
  }
  if (!options.dry_run) bytes.fetcher.let_go();
  return bytes.fetcher.evict(options);
}

// Turns packs whose blobs are at the origin into cache, then applies cache_max.
Result<HandOverReport> make_cache(control::Call& call, Bytes& bytes, std::optional<VersionId> version) {
  HandOverOptions options;
  options.origin = bytes.config.get()->origin;
  options.version = version;
  options.cancelled = [&call] { return call.cancelled(); };
  auto report = hand_over(bytes.store, bytes.store.ledger(), bytes.store.cache(), bytes.fetcher, options);
  bytes.configure();
  return report;
}

// Stores a damaged blob again, from the file that the client sent, or else from the origin or a peer.
Result<Nothing> repair(control::Call& call, const RepairRequest& request, Bytes& bytes) {
  WEFT_CHECK(check_access(bytes.config.get()->gc, call.peer(), "repair blobs"));
  CallProgress progress(call);
  progress.names_rate([&bytes] { return bytes.gate->held_by(Traffic::staging); });
  const std::vector<Fd> fds = call.take_fds();
  if (fds.empty()) {
    WEFT_CHECK(refetch_blob(bytes.store, bytes.store.cache(), bytes.fetcher, request.blob, progress));
    return Nothing{};
  }
  WEFT_TRY(const struct stat st, stat_fd(fds.front().get(), "repair"));
  if (!S_ISREG(st.st_mode)) return Error{Errc::invalid, "repair: expected a regular file"};
  WEFT_TRY(const auto repair, bytes.store.begin_repair());
  WEFT_CHECK(repair->add(request.blob, fds.front().get(), request.offset, "the file that the client sent", progress));
  WEFT_CHECK(repair->commit());
  return Nothing{};
}

// The wait of a stage-out, with its limit of time. It is asked each 100 ms whether the wait ends, and then shows what
// moves. One thread.
class StageOutWait {
 public:
  StageOutWait(control::Call& call, const WriteBehind& behind, const PaceGate& gate, std::uint64_t seconds_max)
      : call_(call),
        progress_(call),
        behind_(behind),
        seconds_max_(seconds_max),
        shown_(behind.status().bytes_written) {
    progress_.names_rate([&gate] { return gate.held_by(Traffic::staging); });
  }

  bool ends() {
    const WriteBehindStatus now = behind_.status();
    progress_.phase(now.problem.empty() ? fmt::format("{} (versions to go: {})", now.active, now.waiting)
                                        : now.problem);
    progress_.advance(now.bytes_written - std::exchange(shown_, now.bytes_written));
    return call_.cancelled() || is_late();
  }

  // Returns the outcome of the wait.
  Status end(Status waited) const {
    if (waited.ok() || waited.error().code != Errc::cancelled || call_.cancelled() || !is_late()) return waited;
    const WriteBehindStatus now = behind_.status();
    return Error{Errc::timed_out,
                 fmt::format("not all is at the origin after {} s (versions that wait: {}{}{}); weftd goes on",
                             seconds_max_, now.waiting, now.problem.empty() ? "" : "; ", now.problem)};
  }

 private:
  using Clock = std::chrono::steady_clock;
  bool is_late() const { return seconds_max_ != 0 && Clock::now() - begun_ >= std::chrono::seconds(seconds_max_); }

  control::Call& call_;
  CallProgress progress_;
  const WriteBehind& behind_;
  const std::uint64_t seconds_max_;
  const Clock::time_point begun_ = Clock::now();
  std::uint64_t shown_;
};

Result<HandOverReport> stage_out(control::Call& call, const StageOutRequest& request, Bytes& bytes) {
  if (!bytes.behind) return Error{Errc::unsupported, "this daemon has no origin configured"};
  const auto config = bytes.config.get();
  if (request.evictable) WEFT_CHECK(check_access(config->gc, call.peer(), "make bytes evictable"));
  if (request.new_origin) {
    WEFT_CHECK(check_access(config->gc, call.peer(), "take another origin"));
    WEFT_CHECK(bytes.behind->take_new_origin([&call] { return call.cancelled(); }));
  }
  std::optional<VersionId> version;
  if (!request.spec.empty()) {
    WEFT_TRY(const VersionRow row, version_of(bytes.store, request.spec));
    version = row.id;
  }
  StageOutWait wait(call, *bytes.behind, *bytes.gate, std::min(request.seconds_max, kStageOutSecondsMax));
  const auto ends = [&wait] { return wait.ends(); };
  WEFT_CHECK(wait.end(version ? bytes.behind->wait_for(*version, ends) : bytes.behind->wait(ends)));
  HandOverReport report;
  if (request.evictable) {
    WEFT_TRY(report, make_cache(call, bytes, version));
  }
  return report;
}

Result<OriginReport> origin(control::Call& /*call*/, const Nothing& /*request*/, Bytes& bytes) {
  OriginReport report;
  report.path = bytes.config.get()->origin;
  if (report.path.empty()) return Error{Errc::unsupported, "this daemon has no origin configured"};
  WEFT_TRY(report.totals, origin_totals(report.path, kReadOriginPatience));
  report.waiting = bytes.behind ? bytes.behind->status().waiting : 0;
  return report;
}

}  // namespace

void serve_bytes(control::Server& server, Bytes& bytes) {
  serve(server, bytes, "resolve", resolve);
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
