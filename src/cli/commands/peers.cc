#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/shared/table.h"

namespace weft {
namespace {

constexpr CommandInfo kInfo = {
    .name = "peers",
    .summary = "list the daemons of the cluster",
    .description =
        "Asks this store's daemon, which knows them without asking anybody: those whose\n"
        "lease in etcd lives. A node that is not in a cluster has none.\n",
    .examples = "weft peers\n",
    .json = "{peers: [{node, name, address, provider, since}]}\n",
    .interrupted = "",
};

class PeersCommand final : public Command {
 public:
  const CommandInfo& info() const override { return kInfo; }
  void declare(OptionSet& /*options*/) override {}

  Result<int> run(Context& context) override {
    WEFT_TRY(const auto daemon, context.daemon());
    if (!daemon)
      return Error{Errc::unreachable, fmt::format("{}: no daemon runs for this store", context.store_path())};
    WEFT_TRY(const control::Answer answer, context.ask(*daemon, "peers", ""));
    WEFT_TRY(const auto* peers, answer.body.array("peers"));
    JsonWriter json;
    json.begin_object().key("peers").begin_array();
    TextTable table({{"NAME"}, {"ADDRESS"}, {"PROVIDER"}, {"SINCE"}, {"NODE"}});
    for (const JsonValue& peer : *peers) {
      json.begin_object();
      for (const std::string_view key : {"node", "name", "address", "provider", "since"}) {
        WEFT_TRY(const std::string value, peer.text(key));
        json.member(key, value);
      }
      json.end_object();
      table.row({printable(*peer.text("name")), printable(*peer.text("address")), printable(*peer.text("provider")),
                 *peer.text("since"), *peer.text("node")});
    }
    json.end_array().end_object();
    if (context.json)
      context.print_json(json);
    else if (!table.empty())
      context.print("{}", table.text());
    return kExitDone;
  }
};

}  // namespace

std::unique_ptr<Command> make_peers_command() {
  return std::make_unique<PeersCommand>();
}

}  // namespace weft
