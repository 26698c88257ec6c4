#include <fmt/ranges.h>

#include "base/text.h"
#include "cli/cluster/cluster_commands.h"
#include "cli/shared/daemon_call.h"
#include "cli/shared/table.h"
#include "daemon_api/control_messages.h"

namespace weft {
namespace {

constexpr CommandInfo kClusterRotateKeyInfo = {
    .name = "cluster rotate-key",
    .summary = "change the cluster's key on all nodes",
    .description =
        "Makes a new key and gives it to all nodes, through their sessions. Readers and\n"
        "writers go on. Run it on any one node, as root or as the user of weftd.\n"
        "\n"
        "All nodes first accept the new key beside the old one, then use it, and at last\n"
        "forget the old one. If a node is away, the others still accept the old key, and\n"
        "the command names the node. Run the command again on the same node as before when\n"
        "the absent node is back. If it does not come back, use --finish: it then needs a\n"
        "copy of the new key.\n"
        "\n"
        "A command that was interrupted goes on if you run it again on the same node.\n",
    .examples =
        "weft cluster rotate-key\n"
        "weft cluster rotate-key --finish\n",
    .json = "{key, before, nodes: [NAME], away: [NAME], forgotten}\n",
};

class ClusterRotateKeyCommand final : public Command {
 public:
  void declare(OptionSet& options) override {
    options.flag("--finish", request_.finish, "forget the old key, also if nodes are away or do not answer");
  }

  Result<int> run(Context& context) override {
    WEFT_TRY(const auto report, call_daemon<RotateKeyReport>(context, "rotate_key", request_));
    context.json ? context.print_json(encode_fields(report)) : print(context, report);
    return kExitDone;
  }

 private:
  static void print(const Context& context, const RotateKeyReport& report) {
    const std::size_t nodes = report.nodes.size() + 1;
    context.print("{} {} the key {}\n", count_of(nodes, "node"), nodes == 1 ? "uses" : "use", report.key);
    if (!report.away.empty()) context.print("away: {}\n", fmt::join(report.away, ", "));
    if (report.forgotten) return context.print("the old key {} is forgotten\n", report.before);
    context.print("the old key {} is still accepted: run this again when these nodes are back, or with --finish\n",
                  report.before);
  }

  RotateKeyRequest request_;
};

}  // namespace

constinit const CommandEntry kClusterKeyCommand = {kClusterRotateKeyInfo, make<ClusterRotateKeyCommand>};

}  // namespace weft
