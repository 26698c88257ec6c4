#include "base/short_text.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/shared/daemon_call.h"
#include "cli/shared/table.h"
#include "daemon_api/control_messages.h"

namespace weft {
namespace {

constexpr CommandInfo kPeersInfo = {
    .name = "peers",
    .summary = "list the daemons of the cluster",
    .description =
        "Lists each daemon whose lease in etcd is valid, as this store's daemon sees it,\n"
        "and the names of the nodes that are absent. A node that is not in a cluster has\n"
        "an empty list. If etcd does not answer, the list is as it was when etcd last\n"
        "answered, and the command says so.\n",
    .examples = "weft peers\n",
    .json =
        "{peers: [{node, name, address, provider, since, since_ns}],\n"
        " absent: [{node, name, last, last_ns}], stale, trouble}\n"
        "(stale is true if etcd does not answer; trouble then says since when and why)\n",
};

class PeersCommand final : public Command {
 public:
  Result<int> run(Context& context) override {
    WEFT_TRY(const auto list, call_daemon<PeerList>(context, "peers", Nothing{}));
    TextTable table({{"NAME"}, {"ADDRESS"}, {"PROVIDER"}, {"SINCE"}, {"NODE"}});
    for (const PeerEntry& peer : list.peers)
      table.row({printable(peer.name), printable(peer.address), printable(peer.provider), local_time(peer.since_ns),
                 peer.node});
    if (context.json) {
      context.print_json(encode_fields(list));
    } else {
      if (!table.empty()) context.print("{}", table.text());
      for (const AbsentNode& node : list.absent)
        context.print("absent: {}, last seen {}\n", node.name, local_time(node.last_ns));
    }
    if (list.stale) context.note("this list may be out of date: etcd does not answer " + printable(list.trouble, 500));
    return kExitDone;
  }
};

}  // namespace

constinit const CommandEntry kPeersCommand = {kPeersInfo, make<PeersCommand>};

}  // namespace weft
