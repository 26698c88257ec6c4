#include "daemon_api/health.h"

#include <algorithm>
#include <array>
#include <functional>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "base/text.h"

namespace weft {
namespace {

constexpr std::uint64_t kSecondNs = 1'000'000'000;
constexpr std::uint64_t kLossIsNewNs = 7 * 86'400 * kSecondNs;  // a loss is no finding after a week
constexpr double kSlowSeconds = 1;                              // of the origin and of etcd
constexpr double kOffsetSeconds = 1, kFarOffsetSeconds = 60;    // of clocks
constexpr std::uint64_t kFewPart = 20, kVeryFewPart = 100;      // 1/20 and 1/100 of a disk are free

constexpr std::array<std::string_view, 15> kWords = {"versions-lost",    "versions-absent",    "versions-on-one-node",
                                                     "copies-unknown",   "origin-unreachable", "origin-slow",
                                                     "etcd-unreachable", "etcd-slow",          "clock-offset",
                                                     "disk-space",       "no-reserve",         "keys-differ",
                                                     "node-absent",      "node-silent",        "history-lost"};

std::string counted(std::uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string seconds_text(double seconds) {
  return seconds < 10 ? fmt::format("{:.3f} s", seconds) : fmt::format("{:.0f} s", seconds);
}

class Judge {
 public:
  Judge(const ClusterHealth& facts, std::uint64_t now_ns) : facts_(facts), now_ns_(now_ns) {}

  std::vector<HealthFinding> run() {
    judge_losses();
    judge_copies();
    judge_services();
    judge_keys();
    for (const NodeFacts& node : facts_.nodes) judge_node(node);
    std::ranges::stable_sort(findings_, {}, [](const HealthFinding& one) { return one.level != "trouble"; });
    return std::move(findings_);
  }

 private:
  void find(HealthLevel level, std::string_view what, std::string text, std::string command = {}) {
    findings_.push_back({std::string(what), std::string(name_of(level)), std::move(text), std::move(command)});
  }

  void judge_losses() {
    if (!facts_.daemon_problem.empty())
      find(HealthLevel::trouble, "node-silent", facts_.daemon_problem, "systemctl start weftd");
    if (facts_.lost == 0 || now_ns_ > facts_.last_lost_ns + kLossIsNewNs) return;
    find(HealthLevel::trouble, "versions-lost",
         fmt::format("{} lost, the last is {}, {}", counted(facts_.lost, "version"), facts_.last_lost,
                     utc_time(facts_.last_lost_ns)),
         "weft log " + facts_.last_lost.substr(0, facts_.last_lost.rfind('@')));
  }

  void judge_copies() {
    if (!facts_.copies_problem.empty())
      find(HealthLevel::warning, "copies-unknown",
           fmt::format("it is unknown which versions lie on one node only: {}", facts_.copies_problem));
    for (const SoleVersions& sole : facts_.sole) {
      const std::string what = fmt::format("{} ({}) {} only on {}", counted(sole.versions, "version"),
                                           human_bytes(sole.bytes), sole.versions == 1 ? "is" : "are", sole.node);
      const std::string named =
          fmt::format("{}{}", fmt::join(sole.named, ", "), sole.versions > sole.named.size() ? ", …" : "");
      if (sole.absent)
        find(HealthLevel::trouble, "versions-absent", fmt::format("{}, which is absent: {}", what, named),
             fmt::format("start weftd on {0}, or `weft node remove {0} --force`", sole.node));
      else
        find(HealthLevel::warning, "versions-on-one-node", fmt::format("{}: {}", what, named),
             facts_.origin.place.empty() ? "weft node drain " + sole.node : std::string("weft stage-out"));
    }
  }

  void judge_service(const ServiceFacts& service, const std::string& name, const std::string& command) {
    if (service.place.empty()) return;
    if (!service.problem.empty())
      find(HealthLevel::trouble, name + "-unreachable", fmt::format("{} {}: {}", name, service.place, service.problem),
           command);
    else if (service.seconds > kSlowSeconds)
      find(HealthLevel::warning, name + "-slow",
           fmt::format("{} {} answers after {}", name, service.place, seconds_text(service.seconds)));
  }

  void judge_services() {
    judge_service(facts_.origin, "origin", "weftd --check");
    judge_service(facts_.etcd, "etcd", "weft status --all");
    if (!facts_.history_lost.empty())
      find(HealthLevel::trouble, "history-lost",
           fmt::format("the registry has lost history, and no node can change names: {}", facts_.history_lost),
           "weft cluster reconcile");
  }

  void judge_keys() {
    if (facts_.keys > 1)
      find(HealthLevel::warning, "keys-differ", "a change of the cluster's key has not ended",
           "weft cluster rotate-key");
  }

  void judge_node(const NodeFacts& node) {
    const std::string name = node.name.empty() ? "this machine" : node.name;
    if (!node.present)
      return find(HealthLevel::warning, "node-absent",
                  fmt::format("{} is absent since {}", name, utc_time(node.last_ns)),
                  fmt::format("start weftd there, or `weft node remove {}`", name));
    if (node.other_key)
      return find(HealthLevel::trouble, "keys-differ", fmt::format("{} has another key of the cluster", name),
                  "copy the key file of this node there");
    if (!node.problem.empty())
      return find(HealthLevel::trouble, "node-silent", fmt::format("{} does not answer: {}", name, node.problem));
    judge_clock(node, name);
    judge_disk(node, name);
  }

  // The offset counts as far as it exceeds its error.
  void judge_clock(const NodeFacts& node, const std::string& name) {
    const double sure = node.clock_offset_seconds - node.clock_error_seconds;
    if (sure < kOffsetSeconds) return;
    find(sure < kFarOffsetSeconds ? HealthLevel::warning : HealthLevel::trouble, "clock-offset",
         fmt::format("the clock of {} is {} {} this node's", name, seconds_text(node.clock_offset_seconds),
                     node.clock_ahead ? "ahead of" : "behind"),
         "timedatectl set-ntp true");
  }

  void judge_disk(const NodeFacts& node, const std::string& name) {
    if (node.disk_bytes == 0) return;
    if (node.free_bytes < node.disk_bytes / kFewPart)
      find(node.free_bytes < node.disk_bytes / kVeryFewPart ? HealthLevel::trouble : HealthLevel::warning, "disk-space",
           fmt::format("the disk of {} has {} free of {}", name, human_bytes(node.free_bytes),
                       human_bytes(node.disk_bytes)),
           "weft gc, or `weft rm` first");
    if (node.reserve_bytes == 0)
      find(HealthLevel::warning, "no-reserve",
           fmt::format("{} has no reserved space, which a removal needs if the disk is full", name), "weft gc");
  }

  const ClusterHealth& facts_;
  const std::uint64_t now_ns_;
  std::vector<HealthFinding> findings_;
};

}  // namespace

std::optional<std::string> clock_text(const NodeFacts& node) {
  if (node.self || !node.asked || !node.problem.empty()) return {};
  return fmt::format("{}{:.4f} s, ± {:.4f} s", node.clock_ahead ? "+" : "-", node.clock_offset_seconds,
                     node.clock_error_seconds);
}

std::vector<const NodeFacts*> compared_clocks(const ClusterHealth& facts) {
  std::vector<const NodeFacts*> compared;
  for (const NodeFacts& node : facts.nodes)
    if (node.present && clock_text(node)) compared.push_back(&node);
  std::ranges::stable_sort(compared, std::ranges::greater{},
                           [](const NodeFacts* node) { return node->clock_offset_seconds; });
  return compared;
}

void fields(JsonFields& f, NodeFacts& m) {
  f("name", m.name)("node", m.node)("address", m.address)("present", m.present)("self", m.self)("asked", m.asked);
  f("problem", m.problem)("other_key", m.other_key)("last_ns", m.last_ns);
  f("round_trip_seconds", m.round_trip_seconds)("clock_offset_seconds", m.clock_offset_seconds);
  f("clock_ahead", m.clock_ahead)("clock_error_seconds", m.clock_error_seconds)("free_bytes", m.free_bytes)(
      "disk_bytes", m.disk_bytes);
  f("reserve_bytes", m.reserve_bytes)("unsaved", m.unsaved)("owned_versions", m.owned_versions);
  f("owned_bytes", m.owned_bytes);
}

void fields(JsonFields& f, SoleVersions& m) {
  f("id", m.id)("node", m.node)("absent", m.absent)("versions", m.versions)("bytes", m.bytes)("named", m.named);
}

void fields(JsonFields& f, ServiceFacts& m) {
  f("place", m.place)("problem", m.problem)("seconds", m.seconds);
}

void fields(JsonFields& f, ClusterHealth& m) {
  f("gathered_ns", m.gathered_ns)("clustered", m.clustered)("daemon_problem", m.daemon_problem)("lost", m.lost);
  f("last_lost", m.last_lost)("last_lost_ns", m.last_lost_ns)("origin", m.origin)("etcd", m.etcd);
  f("history_lost", m.history_lost)("keys", m.keys);
  f("nodes", m.nodes)("copies_known", m.copies_known)("copies_problem", m.copies_problem);
  f("copies_ns", m.copies_ns)("sole", m.sole);
}

void fields(JsonFields& f, HealthFinding& m) {
  f("what", m.what)("level", m.level)("text", m.text)("command", m.command);
}

void fields(JsonFields& f, HealthReport& m) {
  f("verdict", m.verdict)("findings", m.findings)("facts", m.facts);
}

std::string_view name_of(HealthLevel level) {
  switch (level) {
    case HealthLevel::well:
      return "well";
    case HealthLevel::warning:
      return "warning";
    case HealthLevel::trouble:
      return "trouble";
  }
  return "";
}

std::vector<HealthFinding> judge(const ClusterHealth& facts, std::uint64_t now_ns) {
  return Judge(facts, now_ns).run();
}

HealthLevel verdict_of(const std::vector<HealthFinding>& findings) {
  if (findings.empty()) return HealthLevel::well;
  const bool trouble = std::ranges::any_of(findings, [](const auto& one) { return one.level == "trouble"; });
  return trouble ? HealthLevel::trouble : HealthLevel::warning;
}

std::string verdict_line(const std::vector<HealthFinding>& findings) {
  const HealthLevel verdict = verdict_of(findings);
  if (verdict == HealthLevel::well) return "well";
  const auto troubles = static_cast<std::uint64_t>(
      std::ranges::count_if(findings, [](const auto& one) { return one.level == "trouble"; }));
  const std::uint64_t warnings = findings.size() - troubles;
  std::string text(name_of(verdict));
  if (troubles > 0) text += fmt::format(": {} in trouble", counted(troubles, "finding"));
  if (warnings > 0) text += fmt::format("{} {}", troubles > 0 ? "," : ":", counted(warnings, "warning"));
  return text;
}

std::vector<std::string_view> finding_words() {
  return {kWords.begin(), kWords.end()};
}

HealthReport report_of(ClusterHealth facts, std::uint64_t now_ns) {
  HealthReport report;
  report.findings = judge(facts, now_ns);
  report.verdict = name_of(verdict_of(report.findings));
  report.facts = std::move(facts);
  return report;
}

}  // namespace weft
