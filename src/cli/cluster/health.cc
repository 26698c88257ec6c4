#include "daemon_api/health.h"
#include "cli/cluster/cluster_commands.h"
#include "cli/shared/daemon_call.h"
#include "cli/shared/table.h"
#include "os/file_ops.h"
#include "os/safe_path.h"
#include "os/sys.h"
#include "weft/store/snapshot.h"

namespace weft {
namespace {

constexpr CommandInfo kHealthInfo = {
    .name = "health",
    .summary = "judge the machine, or the whole cluster",
    .description =
        "Gathers facts from all nodes that answer, and judges them: lost versions, versions\n"
        "that are only on an absent node or on one node, the origin, etcd, clocks, disks,\n"
        "keys. A finding names the command against it, if there is one. Without a cluster\n"
        "it judges this machine, and needs no weftd.\n"
        "\n"
        "The exit status is 0 if all is well, 1 if there are only warnings, and 2 if there\n"
        "is trouble. weftd reports the same facts as metrics.\n",
    .examples =
        "weft health\n"
        "weft health --json | jq -r '.findings[].text'\n",
    .json =
        "{verdict, findings: [{what, level, text, command}], facts: {gathered_ns,\n"
        " clustered, daemon_problem, lost, last_lost, last_lost_ns,\n"
        " origin: {place, problem, seconds}, etcd: {place, problem, seconds},\n"
        " history_lost, keys,\n"
        " nodes: [{name, node, address, present, self, asked, problem, other_key, last_ns,\n"
        " round_trip_seconds, clock_offset_seconds, clock_ahead, clock_error_seconds,\n"
        " free_bytes, disk_bytes, reserve_bytes, unsaved, owned_versions, owned_bytes}],\n"
        " copies_known, copies_problem, copies_ns,\n"
        " sole: [{id, node, absent, versions, bytes, named: [VERSION]}]}};\n"
        "verdict and level are \"well\", \"warning\" or \"trouble\"\n",
};

constexpr std::string_view kNoDaemon =
    "weftd does not run here, and a node of a cluster cannot publish or fetch without it";

// Returns the facts of a machine whose daemon does not answer, or that has none.
Result<ClusterHealth> facts_without_daemon(const Context& context, std::string problem) {
  ClusterHealth facts;
  WEFT_TRY(const auto store, context.open_to_read());
  WEFT_TRY(const StoreCounts counts, store->counts());
  facts.gathered_ns = now_ns();
  facts.clustered = store->cluster().has_value();
  facts.daemon_problem = std::move(problem);
  if (facts.daemon_problem.empty() && facts.clustered) facts.daemon_problem = kNoDaemon;
  facts.lost = counts.lost;
  if (counts.lost > 0) {
    facts.last_lost = spec_of(counts.newest_lost);
    facts.last_lost_ns = counts.newest_lost.removed_ns;
  }
  NodeFacts here;
  here.present = here.self = true;
  here.node = store->info().uuid;
  if (const auto space = disk_space(store->directory().root().fd())) {
    here.free_bytes = space->available;
    here.disk_bytes = space->total;
  }
  if (const auto spare = stat_file(store->directory() / "index" / "spare"); spare.ok())
    here.reserve_bytes = static_cast<std::uint64_t>(spare->st_size);
  facts.nodes.push_back(std::move(here));
  return facts;
}

Result<HealthReport> health_of(const Context& context) {
  WEFT_TRY(const auto daemon, context.daemon());
  std::string problem;
  if (daemon) {
    auto report = call_daemon<HealthReport>(context, *daemon, "health", HealthRequest{true});
    if (report.ok() || report.error().code == Errc::cancelled) return report;
    problem = "weftd does not answer: " + report.error().message;
  }
  WEFT_TRY(ClusterHealth facts, facts_without_daemon(context, std::move(problem)));
  return report_of(std::move(facts), now_ns());
}

std::string clock_column(const NodeFacts& node) {
  if (node.self) return "this node's";
  return clock_text(node).value_or("-");
}

std::string state_text(const NodeFacts& node) {
  if (!node.present) return "absent";
  if (node.other_key) return "other key";
  return node.problem.empty() ? "present" : "silent";
}

std::string service_text(std::string_view name, const ServiceFacts& service) {
  if (service.place.empty()) return {};
  return fmt::format(
      "{:<9} {}, {}\n", name, service.place,
      service.problem.empty() ? fmt::format("answers in {:.1f} ms", 1e3 * service.seconds) : service.problem);
}

std::string nodes_text(const ClusterHealth& facts) {
  TextTable table({{"NODE"}, {"STATE"}, {"CLOCK"}, {"FREE"}, {"OF"}, {"ONLY THERE"}});
  for (const NodeFacts& node : facts.nodes) {
    const bool known = node.disk_bytes > 0;
    table.row({node.name.empty() ? "this machine" : printable(node.name), state_text(node), clock_column(node),
               known ? human_bytes(node.free_bytes) : "-", known ? human_bytes(node.disk_bytes) : "-",
               facts.copies_known ? count_of(node.owned_versions, "version") : "-"});
  }
  return table.text();
}

std::string findings_text(const HealthReport& report) {
  std::string text;
  for (const HealthFinding& finding : report.findings) {
    text += fmt::format("{:<9} {}\n", finding.level, finding.text);
    if (!finding.command.empty()) text += fmt::format("{:<9} {}\n", "", finding.command);
  }
  return text;
}

class HealthCommand final : public Command {
 public:
  Result<int> run(Context& context) override {
    WEFT_TRY(const HealthReport report, health_of(context));
    if (context.json) {
      context.print_json(encode_fields(report));
    } else {
      const ClusterHealth& facts = report.facts;
      context.print("{}{}{}{}health    {}\n", nodes_text(facts), service_text("origin", facts.origin),
                    service_text("etcd", facts.etcd), findings_text(report), verdict_line(report.findings));
    }
    return static_cast<int>(verdict_of(report.findings));
  }
};

}  // namespace

constinit const CommandEntry kHealthCommand = {kHealthInfo, make<HealthCommand>};

}  // namespace weft
