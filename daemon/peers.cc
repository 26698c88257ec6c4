#include "daemon/peers.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include <fmt/core.h>

#include "base/log.h"
#include "os/lookups/own_address.h"
#include "peers/address.h"
#include "peers/messages.h"
#include "weft/cluster/origin.h"
#include "weft/cluster/transport.h"
#include "weft/store/walk.h"

namespace weft {
namespace {

constexpr auto kMembersPoll = std::chrono::seconds(5);
constexpr auto kProofsMax = std::chrono::seconds(5);
constexpr auto kProofsPoll = std::chrono::milliseconds(10);

// Returns this node's id in the cluster, also before it has joined.
std::string node_id(const Store& store) {
  return store.cluster() ? store.cluster()->node : store.info().uuid;
}

using VersionNames = std::map<Digest, std::string>;  // by manifest: "org/m@2", or "" if no live version has it

// Fills in the names of the manifests.
void find_names(Store& store, VersionNames& names) {
  if (names.empty()) return;
  const auto add_name = [&](const VersionRow& row) -> Status {
    if (row.removed) return {};
    if (const auto found = names.find(row.manifest); found != names.end()) found->second = spec_of(row);
    return {};
  };
  const Status walked = each_row(
      store, list_models(), [&](const ModelRow& model) { return each_row(store, list_versions(model.id), add_name); });
  if (!walked.ok()) log_warning("the status names no versions of swarms: {}", walked.error().message);
}

// Writes the versions that this node introduces nodes for, fetches by a swarm, sends to swarms, and whose units it
// names as the clerk of the origin.
void write_swarms(JsonWriter& json, Store& store, const PeerSwarms& swarms) {
  const auto introduced = swarms.introduced();
  const auto fetched = swarms.fetched();
  const auto sent = swarms.sent();
  const auto named = swarms.named();
  VersionNames names;
  for (const auto& one : introduced) names.try_emplace(one.manifest);
  for (const auto& one : fetched) names.try_emplace(one.manifest);
  for (const auto& one : sent) names.try_emplace(one.manifest);
  for (const auto& one : named) names.try_emplace(one.manifest);
  find_names(store, names);
  const auto begin = [&](const Digest& manifest) -> JsonWriter& {
    return json.begin_object().member("manifest", to_hex(manifest)).member("version", names[manifest]);
  };
  json.key("swarms").begin_object().key("introduced").begin_array();
  for (const IntroducedVersion& one : introduced)
    begin(one.manifest).member("members", std::uint64_t{one.members}).end_object();
  json.end_array().key("fetched").begin_array();
  for (const FetchedVersion& one : fetched) {
    begin(one.manifest).member("units", std::uint64_t{one.units});
    json.member("here", std::uint64_t{one.here}).member("partners", std::uint64_t{one.partners});
    json.member("from_partners", one.received.from_partners).member("from_source", one.received.from_source);
    json.member("from_origin", one.received.from_origin).member("declined", one.declined);
    json.member("hungry", one.hungry).member("done", one.done).end_object();
  }
  json.end_array().key("sent").begin_array();
  for (const SentVersion& one : sent) {
    begin(one.manifest).member("units", std::uint64_t{one.units});
    json.member("here", std::uint64_t{one.here}).member("sent", one.sent);
    json.member("waiting", std::uint64_t{one.waiting}).member("uploads", std::uint64_t{one.uploads});
    json.member("is_source", one.is_source).end_object();
  }
  json.end_array().key("named").begin_array();
  for (const SentVersion& one : named) {
    begin(one.manifest).member("units", std::uint64_t{one.units}).member("sent", one.sent);
    json.member("waiting", std::uint64_t{one.waiting}).member("uploads", std::uint64_t{one.uploads}).end_object();
  }
  json.end_array().end_object();
}

void add_swarm_figures(Figures& figures, const PeerSwarms& swarms) {
  const auto add = [&](const char* name, const char* type, const char* help, auto member) {
    figures.add(name, type, help,
                std::function<double()>([&swarms, member] { return static_cast<double>(swarms.figures().*member); }));
  };
  add("weft_swarms", "gauge", "Versions that this node fetches or sends by a swarm.", &SwarmFigures::swarms);
  add("weft_swarm_hungry", "gauge", "Versions for which the node's partners have sent nothing for a while.",
      &SwarmFigures::hungry);
  add("weft_swarm_partners", "gauge", "Nodes that this node may get units from, each once for each version.",
      &SwarmFigures::partners);
  add("weft_swarm_introduced", "gauge", "Nodes that this node introduces to each other, each once for each version.",
      &SwarmFigures::introduced);
  add("weft_swarm_units_held", "gauge", "Units that this node has of the versions that it fetches or sends by a swarm.",
      &SwarmFigures::held);
  add("weft_swarm_units_sent_total", "counter", "Units of versions that partners have read from this node.",
      &SwarmFigures::sent);
  add("weft_swarm_units_named_total", "counter",
      "Units of versions that nodes have read at the origin because this node named them.", &SwarmFigures::named);
  figures.add(
      "weft_swarm_units_received_total", "counter",
      "Units of versions that this node has read from partners, from nodes with the whole version, and from the "
      "origin if a node named them.",
      Figures::Read([&swarms] {
        const ReceivedUnits received = swarms.figures().received;
        const auto sample = [](const char* giver, std::uint64_t units) {
          return Figures::Sample{{{"from", giver}}, static_cast<double>(units)};
        };
        return std::vector{sample("partners", received.from_partners), sample("source", received.from_source),
                           sample("origin", received.from_origin)};
      }));
  add("weft_swarm_units_declined_total", "counter", "Units that partners offered though this node had them already.",
      &SwarmFigures::declined);
}

}  // namespace

Peers::Peers(Store& store, PulledFiles& own_pulls, VersionKeeper& keeper)
    : self_(node_id(store)),
      answers_(store, directory_, coding_, &own_pulls, this, &keeper),
      view_(store, self_),
      links_([this] { return reachable(); }, steady_time(), is_over_tcp),
      version_source_(store, directory_,
                      [this](const std::string& node) { return node == self_ || links_.address(node).has_value(); }) {}

// Tells the swarms which nodes are members no more. While the registry is away, its list may be empty.
void Peers::tell_left(const Registry& registry, const std::vector<Member>& members) {
  std::set<std::string> now;
  for (const Member& member : members) now.insert(member.node);
  if (std::ranges::includes(now, members_)) return members_.swap(now);
  if (!registry.status().connected) return;
  for (const std::string& node : members_)
    if (!now.contains(node) && swarms_) swarms_->left(node);
  members_.swap(now);
}

// Returns the members that hold this node's key and share a provider with it, each with the best common one. Different
// providers cannot talk to each other. Logs the other members.
std::vector<Member> Peers::reachable() {
  const Registry* registry = registry_;
  if (registry == nullptr) return {};
  const auto own = exchange_->endpoints();
  std::vector<Member> out;
  const std::vector<Member> members = registry->members();
  const std::lock_guard lock(mutex_);
  tell_left(*registry, members);
  for (const Member& member : members) {
    if (!holds_key(member)) {
      if (key_lines_.due(member.node))
        log_warning("peer {} ({}) does not hold this node's key of the cluster: they refuse each other", member.node,
                    member.name);
    } else if (auto reached = reached_by(member, own)) {
      unlike_.erase(member.node);
      out.push_back(*std::move(reached));
    } else if (unlike_.insert(member.node).second) {
      log_warning("{} uses provider {}, this node {}: they read nothing from each other", member.name, member.provider,
                  providers_text(own));
    }
  }
  return out;
}

Result<std::unique_ptr<Peers>> Peers::open(Store& store, const LiveConfig& live, PulledFiles& own_pulls,
                                           VersionKeeper& keeper, std::shared_ptr<PaceGate> gate) {
  const auto config = live.get();
  if (config->provider == "none") return std::unique_ptr<Peers>();
  if (const Status own = check_own_address(config->listen.host, 0); !own.ok())
    return Error{own.error().code, fmt::format("listen: {}", own.error().message)};
  std::unique_ptr<Peers> peers(new Peers(store, own_pulls, keeper));
  ExchangeOptions options;
  options.provider = config->provider;
  options.host = config->listen.host;
  options.port = config->listen.port;
  options.node = peers->self_;
  options.key_file = config->key_file;
  options.server = &peers->answers_;
  options.address_text = endpoint_text;
  WEFT_TRY(peers->exchange_, Exchange::open(options));
  peers->swarms_ = std::make_unique<PeerSwarms>(peers->swarms_parts(store, live));
  peers->news_ = std::make_unique<PeerNews>(
      PeerNewsParts{store, peers->self_, peers->directory_, peers->view_, peers->links_, *peers->exchange_});
  peers->source_ = std::make_shared<PeerSource>(*peers->exchange_, peers->view_, peers->links_, *peers->news_,
                                                peers->coding_, peers->swarms_.get(), std::move(gate));
  peers->pulls_ = std::make_unique<PeerPulls>(*peers->exchange_, peers->links_);
  return peers;
}

// Returns the nodes that probably have the whole version.
std::vector<std::string> Peers::holders(const Digest& manifest) {
  return view_.candidates(manifest, nullptr);
}

PeerSwarmsParts Peers::swarms_parts(Store& store, const LiveConfig& live) {
  return {store,
          std::make_unique<ExchangeCalls>(*exchange_, [this](const std::string& node) { return links_.address(node); }),
          self_,
          [&live] { return live.get()->location; },
          [this](const Digest& manifest) { return news_->directories(manifest); },
          [this](const Digest& manifest) { return holders(manifest); },
          [this](const Digest& manifest) { return version_source_.find(manifest); },
          live.get()->origin.empty() ? nullptr : origin_source(live.get()->origin)};
}

Peers::~Peers() {
  end();
}

void Peers::begin(LocalBytes& bytes) {
  swarms_->begin(bytes);
  answers_.begin(bytes, swarms_.get());
}

void Peers::end() {
  answers_.end();
  if (swarms_) swarms_->end();
}

void Peers::join(Registry& registry) {
  registry_ = &registry;
  members_poll_.start([this]() -> Worker::Pause {
    static_cast<void>(reachable());
    return kMembersPoll;
  });
}

Status Peers::reload_keys() {
  const std::vector<std::string> before = exchange_->key_names();
  WEFT_CHECK(exchange_->reload_keys());
  announce_keys(before);
  return {};
}

void Peers::wait_for_proofs(const std::string& forgotten) {
  const Registry* registry = registry_;
  if (registry == nullptr) return;
  const std::string proved = exchange_->key_names().front();
  const auto is_late = [&](const Member& member) {
    return member.node != self_ && exchange_->shows_key(member.node, member.key_proof, forgotten) &&
           !exchange_->shows_key(member.node, member.key_proof, proved);
  };
  const Deadline end = deadline_in(kProofsMax);
  while (std::ranges::any_of(registry->members(), is_late) && Deadline::clock::now() < end)
    std::this_thread::sleep_for(kProofsPoll);
}

Status Peers::follow(const KeyOrder& order) {
  if (Registry* registry = registry_; registry != nullptr && order.step == KeyStep::forget)
    static_cast<void>(registry->catch_up(deadline_in(kProofsMax)));  // without etcd the members stay as they are
  const std::vector<std::string> before = exchange_->key_names();
  WEFT_CHECK(exchange_->change_key(order));
  announce_keys(before);
  return {};
}

void Peers::announce_keys(const std::vector<std::string>& before) {
  if (Registry* registry = registry_; registry != nullptr) registry->set_key_proof(own_key_proof());
  const std::vector<std::string> now = exchange_->key_names();
  if (now != before)
    log_info("this node proves the cluster's key {}{}", now.front(),
             now.size() > 1 ? fmt::format(", and accepts {} too", now.back()) : ", and accepts no other");
}

Status Peers::order(const std::string& node, const KeyOrder& order) {
  WEFT_CHECK(ask(node, order, deadline_in(kSilenceMax)));
  return {};
}

Result<std::vector<std::byte>> Peers::ask(const std::string& node, const PeerRequest& request, Deadline deadline) {
  const auto address = links_.address(node);
  if (!address) return Error{Errc::unreachable, "this node cannot call it"};
  WEFT_TRY(const auto answer, exchange_->call(*address, encode_request(request), deadline));
  const auto head = answer->head();
  return std::vector<std::byte>(head.begin(), head.end());
}

// The record of this node may be older than its key.
bool Peers::holds_key(const Member& member) const {
  return member.node == self_ || member.address.empty() || exchange_->accepts_proof(member.node, member.key_proof);
}

void write_peers_status(JsonWriter& json, Store& store, const Peers& peers) {
  const ExchangeFigures now = peers.exchange().figures();
  json.key("exchange").begin_object().member("provider", providers_text(peers.exchange().endpoints()));
  json.key("passed_over").begin_array();
  for (const PassedOver& one : now.passed_over)
    json.begin_object().member("name", one.provider).member("reason", one.reason).end_object();
  json.end_array();
  json.key("keys").begin_array();
  for (const std::string& name : peers.exchange().key_names()) json.value(name);
  json.end_array();
  json.member("address", addresses_text(peers.exchange().endpoints())).member("sessions", now.sessions);
  json.member("handshakes", now.handshakes).member("half_open", now.half_open).member("calls", now.calls);
  json.member("answers", now.answers).member("busy", now.busy).member("refused", now.refused);
  json.key("refusals").begin_object();
  for (std::size_t i = 0; i < now.refusals.size(); ++i) json.member(kPeerRefusalNames.at(i), now.refusals.at(i));
  json.end_object();
  json.member("windows", now.windows).member("window_bytes", now.window_bytes).member("lease_ends", now.lease_ends);
  json.member("read_bytes", now.read_bytes).member("served_bytes", now.served_bytes);
  json.member("pinned_bytes", now.pinned_bytes).member("buffers_aside", now.buffers_aside);
  const TransportCounters& transport = now.transport;
  json.key("transport").begin_object().member("messages_sent", transport.messages_sent);
  json.member("messages_received", transport.messages_received).member("reads", transport.reads_done);
  json.member("registrations", transport.registrations).member("half_open", transport.half_open);
  json.end_object().end_object();
  write_swarms(json, store, peers.peer_swarms());
}

void add_peer_figures(Figures& figures, const Peers& peers) {
  const auto add = [&](const char* name, const char* type, const char* help, auto member) {
    figures.add(name, type, help, std::function<double()>([&peers, member] {
                  return static_cast<double>(std::invoke(member, peers.exchange().figures()));
                }));
  };
  add("weft_peer_sessions", "gauge", "Open sessions with other daemons.", &ExchangeFigures::sessions);
  add("weft_peer_calls_total", "counter", "Calls to other daemons.", &ExchangeFigures::calls);
  add("weft_peer_answers_total", "counter", "Answers sent to other daemons.", &ExchangeFigures::answers);
  add("weft_peer_busy_total", "counter", "Calls that were rejected because there were too many.",
      &ExchangeFigures::busy);
  figures.add(
      "weft_peer_refused_total", "counter", "Messages and handshakes that were refused, by reason.",
      Figures::Read([&peers] {
        const ExchangeFigures now = peers.exchange().figures();
        std::vector<Figures::Sample> samples;
        for (std::size_t i = 0; i < now.refusals.size(); ++i)
          samples.push_back({{{"reason", kPeerRefusalNames.at(i)}}, static_cast<double>(now.refusals.at(i)), {}});
        return samples;
      }));
  add("weft_peer_windows", "gauge", "Open windows on this node's bytes.", &ExchangeFigures::windows);
  add("weft_peer_pinned_bytes", "gauge", "Memory that RDMA hardware holds in place.", &ExchangeFigures::pinned_bytes);
  add("weft_peer_registrations_total", "counter", "Registrations of memory with the hardware.",
      [](const ExchangeFigures& now) { return now.transport.registrations; });
  add("weft_peer_lease_ends_total", "counter", "Answers whose windows the reader did not close in time.",
      &ExchangeFigures::lease_ends);
  add("weft_peer_read_bytes_total", "counter", "Bytes read from peers.", &ExchangeFigures::read_bytes);
  add("weft_peer_served_bytes_total", "counter", "Bytes served to peers.", &ExchangeFigures::served_bytes);
  add_swarm_figures(figures, peers.peer_swarms());
}

}  // namespace weft
