// `weft node`: the nodes of the cluster that this node belongs to.
#include "cli/cluster/cluster_commands.h"
#include "cli/shared/daemon_call.h"
#include "cli/shared/table.h"
#include "daemon_api/control_messages.h"
#include "daemon_api/health.h"

namespace weft {
namespace {

constexpr CommandInfo kNodeListInfo = {
    .name = "node list",
    .summary = "list all nodes of the cluster, absent ones too",
    .description =
        "Lists each node that the cluster knows, with the bytes of the versions that only\n"
        "this node has. It asks all members, which takes seconds if one does not answer.\n",
    .examples =
        "weft node list\n"
        "weft node list --json\n",
    .json =
        "{nodes: [{name, node, address, state, owned_versions, owned_bytes, last_seen,\n"
        " last_ns}], owned_problem}; state is \"present\" or \"absent\"; owned_problem says why\n"
        "owned_versions and owned_bytes are unknown, or is \"\"\n",
};

class NodeListCommand final : public Command {
 public:
  Result<int> run(Context& context) override {
    WEFT_TRY(const auto report, call_daemon<HealthReport>(context, "health", HealthRequest{true}));
    if (!report.facts.clustered) return Error{Errc::unsupported, "this node belongs to no cluster"};
    context.json ? context.print_json(json_of(report.facts)) : context.print("{}", text_of(report.facts));
    return kExitDone;
  }

 private:
  static JsonWriter json_of(const ClusterHealth& facts) {
    JsonWriter json;
    json.begin_object().key("nodes").begin_array();
    for (const NodeFacts& node : facts.nodes) {
      json.begin_object().member("name", node.name).member("node", node.node).member("address", node.address);
      json.member("state", node.present ? "present" : "absent").member("owned_versions", node.owned_versions);
      json.member("owned_bytes", node.owned_bytes).member("last_seen", utc_time(node.last_ns));
      json.member("last_ns", node.last_ns).end_object();
    }
    json.end_array().member("owned_problem", facts.copies_problem).end_object();
    return json;
  }

  static std::string text_of(const ClusterHealth& facts) {
    TextTable table({{"NAME"}, {"STATE"}, {"ADDRESS"}, {"ONLY THERE"}, {"LAST SEEN"}, {"NODE"}});
    for (const NodeFacts& node : facts.nodes)
      table.row({printable(node.name), node.present ? "present" : "absent", printable(node.address),
                 facts.copies_known ? human_bytes(node.owned_bytes) : "unknown",
                 node.present ? "now" : local_time(node.last_ns), node.node});
    return table.text() + (facts.copies_problem.empty() ? "" : "unknown: " + facts.copies_problem + "\n");
  }
};

constexpr CommandInfo kNodeDrainInfo = {
    .name = "node drain",
    .summary = "move what only one node has, so that the node may go",
    .description =
        "Moves the versions that only this node keeps, or NODE, to the origin. Without an\n"
        "origin the other nodes with the most free space fetch and pin them. Reports when\n"
        "the node may go. Run it as root or as the user of weftd, on any node.\n"
        "\n"
        "A drain that was interrupted goes on if you run it again. Versions that the node\n"
        "publishes meanwhile are moved too, but not those that it publishes afterwards.\n",
    .examples =
        "weft node drain\n"
        "weft node drain n3\n",
    .json = "{node, name, versions, bytes, to: [NAME]}\n",
    .interrupted = "run it again to go on",
};

class NodeDrainCommand final : public Command {
 public:
  void declare(OptionSet& options) override {
    options.argument("NODE", request_.node, OptionSet::Need::optional, "name or id of the node");
  }

  Result<int> run(Context& context) override {
    WEFT_TRY(const auto report, call_daemon<NodeDrainReport>(context, "node_drain", request_));
    if (context.json)
      context.print_json(encode_fields(report));
    else if (report.versions == 0)
      context.print("{} may go: all its versions are elsewhere\n", report.name);
    else
      context.print("{} may go: {} ({}) moved to {}\n", report.name, count_of(report.versions, "version"),
                    human_bytes(report.bytes), joined(report.to, ", "));
    return kExitDone;
  }

 private:
  NodeDrainRequest request_;
};

constexpr CommandInfo kNodeRemoveInfo = {
    .name = "node remove",
    .summary = "forget a node that does not come back",
    .description =
        "Removes an absent node from the list of nodes. Refuses while the node is a member,\n"
        "and while versions exist only there or in caches of other nodes. --force gives up\n"
        "the versions that exist only there: they are removed as lost, and named.\n"
        "Run it as root or as the user of weftd, on any node.\n",
    .examples =
        "weft node remove n3\n"
        "weft node remove n3 --force\n",
    .json = "{node, name, lost: [VERSION]}\n",
};

class NodeRemoveCommand final : public Command {
 public:
  void declare(OptionSet& options) override {
    options.argument("NODE", request_.node, OptionSet::Need::required, "name or id of the node");
    options.flag("-f,--force", request_.force, "give up the versions that exist only there");
  }

  Result<int> run(Context& context) override {
    WEFT_TRY(const auto report, call_daemon<NodeRemoveReport>(context, "node_remove", request_));
    if (context.json) {
      context.print_json(encode_fields(report));
      return kExitDone;
    }
    for (const std::string& version : report.lost) context.print("lost: {}\n", version);
    context.print("{} is removed from the cluster\n", report.name);
    return kExitDone;
  }

 private:
  NodeRemoveRequest request_;
};

}  // namespace

constinit const CommandEntry kNodeListCommand = {kNodeListInfo, make<NodeListCommand>};
constinit const CommandEntry kNodeDrainCommand = {kNodeDrainInfo, make<NodeDrainCommand>};
constinit const CommandEntry kNodeRemoveCommand = {kNodeRemoveInfo, make<NodeRemoveCommand>};

}  // namespace weft
