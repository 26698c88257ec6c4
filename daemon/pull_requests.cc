// The claims of pulls, what pulls of other nodes have received, and what this node has copied of it.
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/call.h"
#include "daemon/access.h"
#include "daemon/parts.h"
#include "daemon/serve.h"
#include "daemon_api/call_progress.h"
#include "drafts/pull_area.h"
#include "fetch/requests/adopt.h"
#include "os/memory_file.h"
#include "weft/store/walk.h"

namespace weft {
namespace {

// The longest pause between two looks at a claim.
constexpr auto kClaimPause = std::chrono::milliseconds(500);

// How long a pull that waits lets etcd be silent.
constexpr auto kEtcdMax = std::chrono::seconds(60);

// The place of one request in the line for a claim. A request that waits lines up again if etcd did not answer for a
// moment.
class PlaceInLine {
 public:
  PlaceInLine(Registry& registry, std::string key) : registry_(registry), key_(std::move(key)) {}

  Result<ClaimStanding> stand() {
    auto now = try_to_stand();
    const auto time = Registry::Clock::now();
    if (now.ok()) {
      answered_ = time;
      last_ = *now;
      return now;
    }
    const bool is_silent = now.error().code == Errc::unreachable || now.error().code == Errc::timed_out;
    if (last_.held || !is_silent || !answered_ || time > *answered_ + kEtcdMax) return now;
    claim_.reset();
    last_.ahead = {};
    return last_;
  }

 private:
  Result<ClaimStanding> try_to_stand() {
    if (!claim_) {
      WEFT_TRY(claim_, registry_.claim(key_));
    }
    return claim_->stand();
  }

  Registry& registry_;
  const std::string key_;
  std::unique_ptr<Claim> claim_;
  ClaimStanding last_;
  std::optional<Registry::Clock::time_point> answered_;
};

ClaimEvent event_of(const ClaimStanding& now) {
  if (now.held) return {.held = true, .node = now.last.node};
  return {.holder = now.holder.name, .node = now.ahead.node, .since_ns = now.holder.since_ns};
}

// Waits for the claim, and then holds it until the client ends the request. All the time other nodes may ask what the
// pull has received, or copied from another node.
Result<Nothing> claim(control::Call& call, const ClaimRequest& request, DaemonParts& parts) {
  WEFT_CHECK(check_any_access(parts.config.get()->publish, call.peer(), "publish"));
  PlaceInLine place(parts.registry, request.key);
  const auto serving = parts.served_pulls.begin(request.key);
  ClaimEvent told;
  bool follows = false;
  do {
    WEFT_TRY(const ClaimStanding now, place.stand());
    ClaimEvent event = event_of(now);
    if (event != told) WEFT_CHECK(call.event(encode_fields(event)));
    if (!event.held && !event.node.empty() && !std::exchange(follows, true)) ++parts.pull_counts.followed;
    told = std::move(event);
  } while (!call.wait_cancelled(kClaimPause));
  if (!told.held) return Error{Errc::cancelled, "interrupted"};
  return Nothing{};
}

// Another user of this node may have the claim.
Result<PulledPart> read_pull(const PulledRequest& request, DaemonParts& parts) {
  const auto cluster = parts.store.cluster();
  if (cluster && cluster->node == request.node) return parts.served_pulls.read(request.ask);
  if (parts.bytes.peers == nullptr) return Error{Errc::unreachable, "this node has no peers"};
  return parts.bytes.peers->pulls().read(request.node, request.ask);
}

// The client has the area of the pull, and its files closed. Pulls of other users receive elsewhere (pull.cc): a
// request of theirs would take the files of a running pull.
Result<AdoptReport> adopt(control::Call& call, const AdoptRequest& request, DaemonParts& parts) {
  WEFT_CHECK(check_any_access(parts.config.get()->publish, call.peer(), "publish"));
  WEFT_TRY(const struct stat st, stat_file(parts.store.directory()));
  if (call.peer().uid != st.st_uid) return AdoptReport{};
  WEFT_TRY(const VersionRow row, version_of(parts.store, request.spec));
  CallProgress progress(call);
  const SafePath files = parts.store.directory() / kPullsFolder / request.key / kPullFiles;
  WEFT_TRY(const std::uint64_t bytes,
           adopt_files(parts.store, parts.store.cache(), parts.bytes.fetcher, row, files, progress));
  parts.pull_counts.adopted_bytes += bytes;
  return AdoptReport{bytes};
}

// The state of the pieces, and the bytes.
Result<Fd> file_of(const PulledPart& part) {
  const auto state = std::as_bytes(std::span(part.got));
  std::vector<std::byte> content(state.begin(), state.end());
  content.insert(content.end(), part.bytes.begin(), part.bytes.end());
  return memory_file("bytes of a pull", content);
}

void pulled(control::Call& call, DaemonParts& parts) {
  const auto request = decode_fields<PulledRequest>(call.body());
  if (!request.ok()) return fail(call, request.error());
  const Status allowed = check_any_access(parts.config.get()->publish, call.peer(), "publish");
  if (!allowed.ok()) return fail(call, allowed.error());
  const auto part = read_pull(*request, parts);
  if (!part.ok()) return call.fail(part.error());  // without a line in the log: a follower asks often
  parts.pull_counts.copied_bytes += part->bytes.size();
  auto file = file_of(*part);
  if (!file.ok()) return fail(call, file.error());
  std::vector<Fd> fds;
  fds.push_back(std::move(file).value());
  PulledAnswer answer{part->got.size(), part->bytes.size()};
  call.answer(encode_fields(answer), std::move(fds));
}

}  // namespace

void add_pull_figures(Figures& figures, const DaemonParts& parts) {
  const auto add = [&](const char* name, const char* help, const std::atomic<std::uint64_t>& count) {
    figures.add(name, "counter", help, [&count] { return static_cast<double>(count.load()); });
  };
  const PullCounts& counts = parts.pull_counts;
  add("weft_pulls_followed_total", "Pulls of other nodes that a pull here has waited for and copied from.",
      counts.followed);
  add("weft_pull_copied_bytes_total", "Bytes that were copied from pulls of other nodes before their publish.",
      counts.copied_bytes);
  add("weft_pull_adopted_bytes_total", "Of these, bytes that the cache has taken over after the publish.",
      counts.adopted_bytes);
}

void serve_pulls(control::Server& server, DaemonParts& parts) {
  serve(server, parts, "claim", claim);
  serve(server, parts, "adopt", adopt);
  server.on("pulled", control::Runs::own_thread,
            [&parts](const std::shared_ptr<control::Call>& call) { pulled(*call, parts); });
}

}  // namespace weft
