#include <fmt/ranges.h>

#include "base/plain_text.h"
#include "base/text.h"
#include "cli/cluster/cluster_commands.h"
#include "cli/shared/daemon_call.h"
#include "cli/shared/table.h"
#include "daemon_api/control_messages.h"

namespace weft {
namespace {

constexpr CommandInfo kClusterReconcileInfo = {
    .name = "cluster reconcile",
    .summary = "merge what nodes, origin and etcd know after etcd lost history",
    .description =
        "Run this on any one node after etcd was restored from a backup, or was replaced\n"
        "by an empty one. Until then no node changes names, and reads go on.\n"
        "\n"
        "Every live node brings back the versions, tags and removals that etcd lacks, and\n"
        "this node also those of the origin. Nodes that are away do it when they return.\n"
        "If etcd has given the number of a version to another one, the version gets a new\n"
        "number, and its tags follow it. The command names each version. After that, names\n"
        "can be changed again.\n"
        "\n"
        "A command that was interrupted goes on if you run it again. The user needs the\n"
        "rights to publish and to remove.\n",
    .examples =
        "weft cluster reconcile --dry-run\n"
        "weft cluster reconcile\n",
    .json =
        "{generation, returned: [SPEC], renumbered: [{model, from, to}], waits_for: [NAME],\n"
        " problems: [TEXT]}; renumbered versions are among returned\n",
    .interrupted = "the nodes go on; the same command continues",
};

class ClusterReconcileCommand final : public Command {
 public:
  void declare(OptionSet& options) override {
    options.flag("--dry-run", wish_.dry_run, "say what this node and the origin would bring back");
  }

  Result<int> run(Context& context) override {
    WEFT_TRY(const auto report, call_daemon<ReconcileReport>(context, "reconcile", wish_));
    context.json ? context.print_json(encode_fields(report)) : print(context, report);
    return report.problems.empty() && report.waits_for.empty() ? kExitDone : kExitFailed;
  }

 private:
  void print(const Context& context, const ReconcileReport& report) const {
    for (const Renumbered& one : report.renumbered)
      context.print("{}@{} is {}@{} now: another version has its number\n", printable(one.model), one.from,
                    printable(one.model), one.to);
    for (const std::string& name : report.returned)
      context.print("{} {}\n", wish_.dry_run ? "would bring back" : "brought back", printable(name));
    for (const std::string& problem : report.problems) context.print("problem: {}\n", printable(problem));
    if (!report.waits_for.empty())
      context.print("not done yet: {}; they go on, run this again to see\n", fmt::join(report.waits_for, ", "));
    if (!context.quiet)
      context.print("{}: {} {}\n", wish_.dry_run ? "registry not changed" : "registry reconciled",
                    count_of(report.returned.size(), wish_.dry_run ? "change" : "version"),
                    wish_.dry_run ? "missing" : "brought back");
  }

  ReconcileWish wish_;
};

}  // namespace

constinit const CommandEntry kClusterReconcileCommand = {kClusterReconcileInfo, make<ClusterReconcileCommand>};

}  // namespace weft
