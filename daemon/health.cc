#include "daemon/health.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "base/thread_pool.h"
#include "daemon/copies.h"
#include "daemon/serve.h"
#include "os/sys.h"
#include "peers/health_facts.h"
#include "weft/cluster/origin.h"
#include "weft/deadline.h"

namespace weft {
namespace {

using std::chrono::seconds;

constexpr auto kGatherEvery = seconds(300);
constexpr auto kGatherAgain = seconds(30);  // while there is trouble
constexpr std::uint64_t kCopiesEveryNs = 3'600'000'000'000;
constexpr auto kFirstAfter = seconds(60);  // after the start: members are known, and their sessions are not in the way
// A version that was published so lately may be on its way to the origin.
constexpr std::uint64_t kYoungNs = 600'000'000'000;
constexpr auto kNodePatience = std::chrono::milliseconds(1'500);
constexpr auto kOriginMax = seconds(5);
constexpr auto kOriginHangsMax = std::chrono::hours(1);  // then a further thread tries
constexpr unsigned kThreadsMax = 16;

double seconds_of(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

void fill(NodeFacts& node, const PeerHealth& health) {
  node.free_bytes = health.free_bytes;
  node.disk_bytes = health.disk_bytes;
  node.reserve_bytes = health.reserve_bytes;
  node.unsaved = health.unsaved;
}

// Compares the clocks. The node read its clock at some time within the round trip: the middle of it is wrong by half of
// the round trip at most.
void compare_clocks(NodeFacts& node, std::uint64_t asked_ns, std::chrono::nanoseconds trip, std::uint64_t clock_ns) {
  const auto half = static_cast<std::uint64_t>(trip.count()) / 2;
  const std::uint64_t here_ns = asked_ns + half;
  node.round_trip_seconds = seconds_of(trip);
  node.clock_error_seconds = static_cast<double>(half) / 1e9;
  node.clock_ahead = clock_ns > here_ns;
  node.clock_offset_seconds = static_cast<double>(node.clock_ahead ? clock_ns - here_ns : here_ns - clock_ns) / 1e9;
}

// Asks twice: the first call may have to connect, and the second one measures the path alone.
void ask_node(Peers& peers, NodeFacts& node) {
  for (int call = 0; call < 2; ++call) {
    const std::uint64_t asked_ns = now_ns();
    const auto begun = std::chrono::steady_clock::now();
    const auto answer = peers.ask(node.node, AskHealth{}, deadline_in(kNodePatience));
    const auto trip = std::chrono::steady_clock::now() - begun;
    const auto health = answer.ok() ? decode_health(*answer, AskHealth{}) : Result<PeerHealth>(answer.error());
    if (!health.ok()) {
      node.problem = health.error().message;
      return;
    }
    fill(node, *health);
    compare_clocks(node, asked_ns, trip, health->clock_ns);
  }
}

// Copies the facts that an earlier call to this node has brought.
void keep_facts(NodeFacts& node, const ClusterHealth& before) {
  const auto known = std::ranges::find(before.nodes, node.node, &NodeFacts::node);
  if (known == before.nodes.end()) return;
  node.owned_versions = known->owned_versions;
  node.owned_bytes = known->owned_bytes;
  if (!node.present || node.self || node.other_key || !known->asked) return;
  NodeFacts facts = *known;
  std::swap(facts.name, node.name);
  std::swap(facts.address, node.address);
  facts.last_ns = node.last_ns;
  node = std::move(facts);
}

NodeFacts this_node(DaemonParts& parts) {
  NodeFacts node;
  node.node = parts.store.cluster() ? parts.store.cluster()->node : parts.store.info().uuid;
  node.name = parts.config.get()->name;
  node.present = node.self = true;
  node.last_ns = now_ns();
  if (const auto health = health_facts(parts.store, {}); health.ok())
    fill(node, *health);
  else
    node.problem = health.error().message;
  return node;
}

// Asks the other members if `ask`. Else their facts are those of `before`.
std::vector<NodeFacts> gather_nodes(DaemonParts& parts, bool ask, const ClusterHealth& before) {
  std::vector<NodeFacts> nodes{this_node(parts)};
  std::map<std::string, Member> members;
  for (Member& member : parts.registry.members()) members.emplace(member.node, std::move(member));
  Peers* const peers = parts.bytes.peers;
  for (const KnownNode& known : parts.registry.nodes()) {
    if (known.node == nodes.front().node) {
      nodes.front().address = known.address;
      continue;
    }
    NodeFacts& node = nodes.emplace_back();
    node.node = known.node;
    node.name = known.name.empty() ? "node " + known.node : known.name;
    node.address = known.address;
    node.present = known.present;
    node.last_ns = known.last_ns;
    const auto member = members.find(known.node);
    const bool can_ask = known.present && peers != nullptr && member != members.end();
    if (can_ask) node.other_key = !peers->holds_key(member->second);
    keep_facts(node, before);
    if (ask) node.asked = can_ask && !node.other_key && !known.address.empty();
    if (ask) node.problem.clear();
  }
  keep_facts(nodes.front(), before);
  if (!ask) return nodes;
  ThreadPool pool(kThreadsMax);
  pool.parallel_for(nodes.size(), [&](std::size_t at) {
    if (nodes[at].asked) ask_node(*peers, nodes[at]);
  });
  return nodes;
}

ServiceFacts gather_etcd(DaemonParts& parts, bool ask, const ClusterHealth& before) {
  const RegistryStatus status = parts.registry.status();
  ServiceFacts etcd;
  if (!status.shared) return etcd;
  etcd.place = status.endpoint;
  etcd.problem = status.connected ? "" : status.trouble;
  etcd.seconds = before.etcd.seconds;
  if (!status.connected || !ask) return etcd;
  const auto took = parts.registry.probe();
  if (took.ok())
    etcd.seconds = seconds_of(*took);
  else
    etcd.problem = took.error().message;
  return etcd;
}

// Returns the entry of a node, or null.
SoleVersions* entry_of(std::vector<SoleVersions>& sole, const std::string& id, bool absent) {
  const auto found =
      std::ranges::find_if(sole, [&](const SoleVersions& one) { return one.id == id && one.absent == absent; });
  return found == sole.end() ? nullptr : &*found;
}

}  // namespace

void Health::start() {
  worker_.start([this] { return round(); });
}

// True on one of the present members.
bool Health::is_reporter() const {
  const auto& cluster = parts_.store.cluster();
  const auto members = parts_.registry.members();
  return cluster && std::ranges::none_of(members, [&](const Member& one) { return one.node < cluster->node; });
}

Result<Worker::Pause> Health::round() {
  if (!std::exchange(begun_, true)) return Worker::Pause(kFirstAfter);
  const std::lock_guard lock(gathering_);
  const std::uint64_t looked_ns = last().copies_ns;
  const bool is_due = looked_ns != 0 && now_ns() - looked_ns > kCopiesEveryNs;
  const Look look = is_due ? Look::copies : is_reporter() ? Look::members : Look::services;
  const ClusterHealth health = gather(look, [this] { return worker_.ending(); });
  const bool trouble = verdict_of(judge(health, now_ns())) == HealthLevel::trouble;
  return Worker::Pause(trouble ? kGatherAgain : kGatherEvery);
}

ClusterHealth Health::last() const {
  const std::lock_guard lock(mutex_);
  return last_;
}

ClusterHealth Health::gather(const std::function<bool()>& cancelled) {
  const std::lock_guard lock(gathering_);
  return gather(Look::copies, cancelled);
}

ClusterHealth Health::known() {
  const std::lock_guard lock(gathering_);
  return gather(Look::here, [] { return false; });
}

ServiceFacts Health::gather_origin() {
  ServiceFacts origin;
  origin.place = parts_.config.get()->origin;
  if (origin.place.empty()) return origin;
  const auto known = parts_.store.ledger().origin();
  const std::string cluster = parts_.store.cluster() ? parts_.store.cluster()->cluster : "";
  const auto begun = std::chrono::steady_clock::now();
  const auto usable = !known.ok() ? Result<bool>(known.error())
                                  : origin_calls_.call<bool>(
                                        [path = origin.place, id = *known, cluster]() -> Result<bool> {
                                          WEFT_CHECK(check_origin(path, id, cluster, kOriginHangsMax));
                                          return true;
                                        },
                                        deadline_in(kOriginMax));
  origin.seconds = seconds_of(std::chrono::steady_clock::now() - begun);
  if (!usable.ok()) origin.problem = usable.error().message;
  return origin;
}

// Called with gathering_ held.
ClusterHealth Health::gather(Look look, const std::function<bool()>& cancelled) {
  const ClusterHealth before = last();
  ClusterHealth health = before;
  health.clustered = parts_.store.cluster().has_value();
  health.history_lost = parts_.registry.status().lost;
  if (const auto counts = parts_.store.counts(); counts.ok() && counts->lost > 0) {
    health.lost = counts->lost;
    health.last_lost = spec_of(counts->newest_lost);
    health.last_lost_ns = counts->newest_lost.removed_ns;
  }
  std::thread origin([&] {
    if (look >= Look::services) health.origin = gather_origin();
  });
  std::thread etcd([&] { health.etcd = gather_etcd(parts_, look >= Look::services, before); });
  health.nodes = gather_nodes(parts_, look >= Look::members, before);
  origin.join();
  etcd.join();
  if (parts_.bytes.peers != nullptr) health.keys = parts_.bytes.peers->exchange().key_names().size();
  if (look == Look::copies) look_for_copies(health, cancelled);
  health.gathered_ns = now_ns();
  const std::lock_guard lock(mutex_);
  last_ = health;
  return health;
}

void Health::look_for_copies(ClusterHealth& health, const std::function<bool()>& cancelled) {
  const auto sole = health.origin.problem.empty()
                        ? sole_versions(parts_, CopyKind::any, cancelled)
                        : Result<std::vector<SoleVersion>>(Error{Errc::unreachable, "the origin does not answer"});
  renew_copies(
      health, sole, [this](const std::string& node) { return name_of_node(parts_.registry, node); }, now_ns());
}

void renew_copies(ClusterHealth& health, const Result<std::vector<SoleVersion>>& sole,
                  const std::function<std::string(const std::string& node)>& name_of, std::uint64_t looked_ns) {
  if (!sole.ok() && sole.error().code == Errc::cancelled) return;
  health.copies_ns = looked_ns;
  health.copies_known = sole.ok();
  health.copies_problem = sole.ok() ? "" : sole.error().message;
  for (NodeFacts& node : health.nodes) node.owned_versions = node.owned_bytes = 0;
  if (!sole.ok()) return;
  health.sole.clear();
  for (const SoleVersion& version : *sole) {
    if (const auto node = std::ranges::find(health.nodes, version.holder, &NodeFacts::node);
        node != health.nodes.end()) {
      ++node->owned_versions;
      node->owned_bytes += version.bytes;
    }
    const bool is_on_its_way =
        version.present && !health.origin.place.empty() && looked_ns < version.time_ns + kYoungNs;
    if (is_on_its_way) continue;
    SoleVersions* of = entry_of(health.sole, version.holder, !version.present);
    if (of == nullptr)
      of = &health.sole.emplace_back(SoleVersions{version.holder, name_of(version.holder), !version.present, 0, 0, {}});
    ++of->versions;
    of->bytes += version.bytes;
    if (of->named.size() < limits::kHealthNamed) of->named.push_back(spec_of(version.name.model, version.name.number));
  }
}

namespace {

Result<HealthReport> health_now(control::Call& call, const HealthRequest& request, Health& health) {
  return report_of(request.fresh ? health.gather([&call] { return call.cancelled(); }) : health.known(), now_ns());
}

using Samples = std::vector<Figures::Sample>;

Samples findings_of(const ClusterHealth& health) {
  Samples samples;
  if (health.gathered_ns == 0) return samples;
  const auto findings = judge(health, now_ns());
  for (const std::string_view word : finding_words())
    samples.push_back({{{"finding", std::string(word)}},
                       static_cast<double>(std::ranges::count(findings, word, &HealthFinding::what))});
  return samples;
}

// A reinstalled node may have the name of an absent one: only the id tells them apart.
decltype(Figures::Sample::labels) labels_of(const std::string& name, const std::string& id) {
  return {{"node", name}, {"id", id}};
}

// Returns a sample of this node, and of each other node that answered.
Samples of_nodes(const ClusterHealth& health, double (*value)(const NodeFacts&)) {
  Samples samples;
  for (const NodeFacts& node : health.nodes)
    if (node.self || (node.asked && node.problem.empty()))
      samples.push_back({labels_of(node.name, node.node), value(node)});
  return samples;
}

Samples of_sole(const ClusterHealth& health, bool absent) {
  Samples samples;
  for (const SoleVersions& sole : health.sole)
    if (sole.absent == absent) samples.push_back({labels_of(sole.node, sole.id), static_cast<double>(sole.versions)});
  return samples;
}

Samples of_service(const ServiceFacts& service) {
  if (service.place.empty() || !service.problem.empty()) return {};
  return {{{}, service.seconds}};
}

}  // namespace

void serve_health(control::Server& server, Health& health) {
  serve(server, health, "health", health_now);
}

void add_health_figures(Figures& figures, const Health& health) {
  const auto add = [&](const char* name, const char* help, auto read) {
    figures.add(name, "gauge", help, Figures::Read([&health, read] { return read(health.last()); }));
  };
  add("weft_health_gathered_timestamp_seconds", "Time when weftd last gathered the facts of the health.",
      [](const ClusterHealth& now) {
        return Samples{{{}, static_cast<double>(now.gathered_ns) / 1e9}};
      });
  add("weft_health_verdict", "0: well; 1: warnings; 2: trouble.", [](const ClusterHealth& now) {
    if (now.gathered_ns == 0) return Samples{};
    return Samples{{{}, static_cast<double>(verdict_of(judge(now, now_ns())))}};
  });
  add("weft_health_findings", "Findings of the health, by their kind.", findings_of);
  add("weft_health_lost_versions", "Versions whose bytes were lost, of all times.", [](const ClusterHealth& now) {
    return Samples{{{}, static_cast<double>(now.lost)}};
  });
  add("weft_health_absent_versions", "Versions that are only on an absent node, by its name and id.",
      [](const ClusterHealth& now) { return of_sole(now, true); });
  add("weft_health_sole_versions", "Versions that are only on one present node, by its name and id.",
      [](const ClusterHealth& now) { return of_sole(now, false); });
  add("weft_health_origin_seconds", "Time that a check of the origin took; none while it does not answer.",
      [](const ClusterHealth& now) { return of_service(now.origin); });
  add("weft_health_etcd_seconds", "Time that a read of one key of etcd took; none while it does not answer.",
      [](const ClusterHealth& now) { return of_service(now.etcd); });
  add("weft_health_clock_offset_seconds", "Clock of a node minus the clock of this node.",
      [](const ClusterHealth& now) {
        return of_nodes(now, [](const NodeFacts& node) {
          return node.clock_ahead ? node.clock_offset_seconds : -node.clock_offset_seconds;
        });
      });
  add("weft_health_free_bytes", "Free bytes of the disk of a node.", [](const ClusterHealth& now) {
    return of_nodes(now, [](const NodeFacts& node) { return static_cast<double>(node.free_bytes); });
  });
  add("weft_health_reserve_bytes", "Reserved bytes of a node, for gc on a full disk.", [](const ClusterHealth& now) {
    return of_nodes(now, [](const NodeFacts& node) { return static_cast<double>(node.reserve_bytes); });
  });
  add("weft_health_node_absent", "1 for each node that is absent, 0 for each that is present.",
      [](const ClusterHealth& now) {
        Samples samples;
        for (const NodeFacts& node : now.nodes)
          samples.push_back({labels_of(node.name, node.node), node.present ? 0.0 : 1.0});
        return samples;
      });
}

}  // namespace weft
