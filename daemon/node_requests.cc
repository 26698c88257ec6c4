// Drains a node, and removes an absent one from the cluster, for `weft node`.
#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <set>
#include <thread>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "base/log.h"
#include "base/text.h"
#include "control/call.h"
#include "daemon/access.h"
#include "daemon/background/drain_targets.h"
#include "daemon/background/drain_watch.h"
#include "daemon/background/kept_versions.h"
#include "daemon/copies.h"
#include "daemon/parts.h"
#include "daemon/serve.h"
#include "daemon_api/call_progress.h"
#include "peers/health_facts.h"

namespace weft {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kDrainLook = std::chrono::seconds(1);  // between two looks at what is left
constexpr auto kAskAgain = std::chrono::seconds(60);  // between two requests to keep one version
// A drain that moves no version for so long ends; a large version may take the time that its bytes take.
constexpr auto kIdleMax = std::chrono::minutes(5);
constexpr std::uint64_t kSlowBytesPerSecond = 50'000'000;
constexpr auto kTargetPatience = std::chrono::seconds(2);
constexpr std::uint64_t kLeftFreePart = 20;  // a target keeps 1/20 of its disk free
constexpr std::size_t kNamedMax = 5;

// Finds a node by its name or its id. If several nodes have the name, returns the only present or absent one: a
// reinstalled node has the name of the node that it replaces.
Result<KnownNode> node_named(const Registry& registry, const std::string& text, bool present) {
  std::vector<KnownNode> nodes = registry.nodes();
  std::erase_if(nodes, [&](const KnownNode& node) { return node.name != text && node.node != text; });
  if (nodes.size() > 1) std::erase_if(nodes, [&](const KnownNode& node) { return node.present != present; });
  if (nodes.size() == 1) return nodes.front();
  if (nodes.empty())
    return Error{Errc::not_found,
                 fmt::format("the cluster knows no node {}; `weft node list` lists its nodes", printable(text))};
  return Error{Errc::invalid, fmt::format("{} nodes have the name {}; expected the id of one, as `weft node list` "
                                          "prints it",
                                          nodes.size(), printable(text))};
}

Result<std::vector<SoleVersion>> only_on(DaemonParts& parts, const std::string& node, CopyKind kind,
                                         const std::function<bool()>& cancelled,
                                         const std::set<std::string>& without = {}) {
  WEFT_TRY(std::vector<SoleVersion> sole, sole_versions(parts, kind, cancelled, without));
  std::erase_if(sole, [&](const SoleVersion& version) { return version.holder != node; });
  return sole;
}

std::string named_versions(const std::vector<SoleVersion>& versions) {
  std::vector<std::string> names;
  for (const SoleVersion& one : versions)
    if (names.size() < kNamedMax) names.push_back(spec_of(one.name.model, one.name.number));
  return fmt::format("{}{}", fmt::join(names, ", "), versions.size() > names.size() ? ", …" : "");
}

bool has_member(const std::vector<Member>& members, const std::string& node) {
  return std::ranges::find(members, node, &Member::node) != members.end();
}

// One drain. The origin takes the versions that the node has published, or else other nodes take them. An interruption
// loses nothing: the next drain looks again at what is left.
class Drain {
 public:
  Drain(DaemonParts& parts, KnownNode node) : parts_(parts), node_(std::move(node)) {}

  Result<NodeDrainReport> run(Progress& progress) {
    progress.phase(fmt::format("moving versions of {}", node_.name));
    WEFT_CHECK(parts_.registry.mark_drained(node_.node));
    for (;;) {
      WEFT_TRY(const std::vector<SoleVersion> left, versions_left(progress));
      show(left, progress);
      if (left.empty()) break;
      WEFT_CHECK(check_present());
      WEFT_CHECK(check_moving(left));
      for (const SoleVersion& version : left) WEFT_CHECK(move(version));
      for (const Clock::time_point until = Clock::now() + kDrainLook; Clock::now() < until;) {
        if (progress.cancelled()) return Error{Errc::cancelled, "interrupted; run it again to go on"};
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
      }
    }
    NodeDrainReport report{node_.node, node_.name, moved_.size(), moved_bytes_, {}};
    report.to.assign(to_.begin(), to_.end());
    return report;
  }

 private:
  // Returns the other nodes that are drained, because these nodes may go too. If two drains begin at the same time, the
  // later one knows of the other.
  std::set<std::string> drained() const {
    std::set<std::string> nodes;
    for (const KnownNode& one : parts_.registry.nodes())
      if (one.drained_ns != 0 && one.node != node_.node) nodes.insert(one.node);
    return nodes;
  }

  // Fetched bytes of other nodes do not count, because these may evict them; nor do they count here.
  Result<std::vector<SoleVersion>> versions_left(const Progress& progress) {
    const auto cancelled = [&progress] { return progress.cancelled(); };
    const std::set<std::string> others = drained();
    WEFT_TRY(std::vector<SoleVersion> left, only_on(parts_, node_.node, CopyKind::kept, cancelled, others));
    WEFT_TRY(const std::vector<SoleVersion> fetched, only_on(parts_, node_.node, CopyKind::any, cancelled, others));
    for (const SoleVersion& one : fetched)
      if (std::ranges::find(left, one.name, &SoleVersion::name) == left.end()) left.push_back(one);
    return left;
  }

  Status check_present() const {
    if (has_member(parts_.registry.members(), node_.node)) return {};
    return Error{Errc::unreachable,
                 fmt::format("{} left the cluster during its drain: start weftd there, and run it again", node_.name)};
  }

  Status check_moving(const std::vector<SoleVersion>& left) {
    std::set<VersionName> names;
    std::uint64_t largest = 0;
    for (const SoleVersion& one : left) {
      names.insert(one.name);
      largest = std::max(largest, one.bytes);
    }
    const auto idle_max = kIdleMax + std::chrono::seconds(largest / kSlowBytesPerSecond);
    const auto idle = watch_.idle(std::move(names), Clock::now());
    if (idle < idle_max) return {};
    const bool to_origin = !parts_.config.get()->origin.empty();
    return Error{Errc::timed_out,
                 fmt::format("no version of {} moved for {} minutes, left are {}; {}", node_.name,
                             std::chrono::duration_cast<std::chrono::minutes>(idle).count(), named_versions(left),
                             to_origin ? "`weft stage-out` on that node says why"
                                       : fmt::format("the log of weftd on {} says why", fmt::join(to_, ", ")))};
  }

  void show(const std::vector<SoleVersion>& left, Progress& progress) {
    std::uint64_t bytes_left = 0;
    for (const SoleVersion& version : left) {
      bytes_left += version.bytes;
      if (!moved_.insert(version.name).second) continue;
      moved_bytes_ += version.bytes;
      progress.total(moved_bytes_);
    }
    const std::uint64_t done = moved_bytes_ - std::min(bytes_left, moved_bytes_);
    if (done > reported_) progress.advance(done - reported_);
    reported_ = std::max(done, reported_);
  }

  Status move(const SoleVersion& version) {
    const std::string origin = parts_.config.get()->origin;
    if (!origin.empty() && version.publisher == node_.node) {
      parts_.write_behind();  // of this node; another one writes by itself
      to_.insert("the origin");
      return {};
    }
    const auto asked = asked_.find(version.name);
    if (asked != asked_.end() && Clock::now() < asked->second + kAskAgain) return {};
    WEFT_TRY(const std::string target, ask_target(version));
    asked_[version.name] = Clock::now();
    to_.insert(name_of_node(parts_.registry, target));
    return {};
  }

  // Asks a node to keep the version, and the next one if it refuses. Returns the node that agreed.
  Result<std::string> ask_target(const SoleVersion& version) {
    if (targets_.empty()) find_targets();
    const std::vector<Member> members = parts_.registry.members();
    const std::set<std::string> others = drained();
    targets_.keep_only([&](const std::string& node) { return has_member(members, node) && !others.contains(node); });
    std::string refusal;
    while (const auto target = targets_.target_for(version.name, version.bytes)) {
      const Status asked = ask_to_keep(*target, {version.name.model, version.name.number});
      if (asked.ok()) return *target;
      refusal = fmt::format("; {} refuses it: {}", name_of_node(parts_.registry, *target), asked.error().message);
      targets_.refuse(version.name);
    }
    return Error{Errc::no_space, fmt::format("no other node has {} free for {}{}", human_bytes(version.bytes),
                                             spec_of(version.name.model, version.name.number), refusal)};
  }

  Status ask_to_keep(const std::string& target, const KeepVersion& keep) {
    if (target == self()) return parts_.kept_versions.keep(keep);
    WEFT_CHECK(parts_.bytes.peers->ask(target, keep, deadline_in(kSilenceMax)));
    return {};
  }

  std::string self() const { return parts_.store.cluster()->node; }

  void find_targets() {
    if (parts_.bytes.peers == nullptr) return;
    const auto add = [this](const std::string& node, const PeerHealth& health) {
      const std::uint64_t kept_free = health.disk_bytes / kLeftFreePart;
      if (health.free_bytes > kept_free) targets_.offer(node, health.free_bytes - kept_free);
    };
    for (const Member& member : parts_.registry.members()) {
      if (member.node == node_.node) continue;
      if (member.node == self()) {
        if (const auto here = health_facts(parts_.store, {}); here.ok()) add(member.node, *here);
        continue;
      }
      const auto answer = parts_.bytes.peers->ask(member.node, AskHealth{}, deadline_in(kTargetPatience));
      if (!answer.ok()) continue;
      if (const auto health = decode_health(*answer, AskHealth{}); health.ok()) add(member.node, *health);
    }
  }

  DaemonParts& parts_;
  const KnownNode node_;
  DrainWatch watch_;
  std::set<VersionName> moved_;  // that are moved, or on their way
  std::uint64_t moved_bytes_ = 0, reported_ = 0;
  std::map<VersionName, Clock::time_point> asked_;  // when a node was asked to keep it
  DrainTargets targets_;
  std::set<std::string> to_;  // names of the places
};

Status check_cluster_node(const DaemonParts& parts) {
  if (parts.store.cluster()) return {};
  return Error{Errc::unsupported, "this node belongs to no cluster"};
}

Result<NodeDrainReport> drain(control::Call& call, const NodeDrainRequest& request, DaemonParts& parts) {
  WEFT_CHECK(check_owner(call.peer(), "drain nodes"));
  WEFT_CHECK(check_cluster_node(parts));
  const std::string wanted = request.node.empty() ? parts.store.cluster()->node : request.node;
  WEFT_TRY(KnownNode node, node_named(parts.registry, wanted, true));
  if (!node.present)
    return Error{Errc::unreachable,
                 fmt::format("{} is absent: start weftd there, or use `weft node remove {}`", node.name, node.name)};
  if (parts.bytes.peers == nullptr && parts.config.get()->origin.empty())
    return Error{Errc::unsupported, "this node has no origin, and calls no other nodes (provider = none)"};
  CallProgress progress(call);
  return Drain(parts, std::move(node)).run(progress);
}

// Refuses if a version would lose its last bytes, or if only caches would have them.
Status check_removable(DaemonParts& parts, const KnownNode& node, const std::vector<SoleVersion>& lost,
                       const std::function<bool()>& cancelled) {
  if (!lost.empty())
    return Error{
        Errc::busy,
        fmt::format("{} version{} only on {}: {}; start weftd there and use `weft node drain {}`, or give them "
                    "up with --force",
                    lost.size(), lost.size() == 1 ? " is" : "s are", node.name, named_versions(lost), node.name)};
  WEFT_TRY(const auto cached, only_on(parts, node.node, CopyKind::kept, cancelled));
  if (cached.empty()) return {};
  return Error{Errc::busy,
               fmt::format("the versions {} of {} are only in caches of other nodes; `weft pin` one of them "
                           "on a node that has it, or use --force",
                           named_versions(cached), node.name)};
}

Result<NodeRemoveReport> remove_node(control::Call& call, const NodeRemoveRequest& request, DaemonParts& parts) {
  WEFT_CHECK(check_owner(call.peer(), "remove nodes"));
  WEFT_CHECK(check_cluster_node(parts));
  WEFT_TRY(const KnownNode node, node_named(parts.registry, request.node, false));
  if (node.present)
    return Error{Errc::busy, fmt::format("{} is a member of the cluster; use `weft node drain {}`, and stop its weftd",
                                         node.name, node.name)};
  const auto cancelled = [&call] { return call.cancelled(); };
  WEFT_TRY(const auto lost, only_on(parts, node.node, CopyKind::any, cancelled));
  if (!request.force) WEFT_CHECK(check_removable(parts, node, lost, cancelled));
  NodeRemoveReport report{node.node, node.name, {}};
  for (const SoleVersion& version : lost) {
    const auto& [model, number] = version.name;
    WEFT_CHECK(parts.registry.lose_version(model, number,
                                           fmt::format("its only node {} was removed from the cluster", node.name)));
    report.lost.push_back(spec_of(model, number));
    audit("remove", report.lost.back(), call.peer().uid);
    log_warning("{} is lost: user {} removed its only node {} from the cluster", report.lost.back(), call.peer().uid,
                node.name);
  }
  WEFT_CHECK(parts.registry.forget_node(node.node));
  log_info("node {} ({}) removed from the cluster by user {}", node.name, node.node, call.peer().uid);
  return report;
}

// Before its weftd is stopped and its settings are removed.
Result<Nothing> leave(control::Call& call, const Nothing& /*request*/, DaemonParts& parts) {
  WEFT_CHECK(check_owner(call.peer(), "take this node out of its cluster"));
  WEFT_CHECK(check_cluster_node(parts));
  WEFT_CHECK(parts.registry.forget_node(parts.store.cluster()->node));
  log_info("this node left the cluster, by user {}", call.peer().uid);
  return Nothing{};
}

}  // namespace

void serve_nodes(control::Server& server, DaemonParts& parts) {
  serve(server, parts, "node_drain", drain);
  serve(server, parts, "node_remove", remove_node);
  serve(server, parts, "node_leave", leave);
}

}  // namespace weft
