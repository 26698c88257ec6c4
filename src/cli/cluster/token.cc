#include "cli/cluster/cluster_commands.h"
#include "cli/cluster/node.h"
#include "cluster_setup/admission.h"
#include "cluster_setup/setup.h"
#include "os/sys.h"

namespace weft {
namespace {

constexpr CommandInfo kClusterTokenInfo = {
    .name = "cluster token",
    .summary = "make another token, on the first node",
    .description =
        "Prints the command by which another machine joins the cluster. Run it on the\n"
        "first node, whose weftd admits the machine. The token is a secret: who has it\n"
        "can read the cluster's models.\n",
    .examples =
        "weft cluster token\n"
        "weft cluster token --uses 16 --valid 10m\n",
    .json = "{token, endpoint, uses, expires}\n",
};

class ClusterTokenCommand final : public Command {
 public:
  void declare(OptionSet& options) override {
    node_.declare_place(options);
    token_.declare(options);
  }

  Status check_usage() override {
    WEFT_CHECK(node_.check());
    return token_.check();
  }

  Result<int> run(Context& context) override {
    WEFT_TRY(const setup::Places places, node_.places(context));
    WEFT_TRY(const setup::SetupRecord record, setup::read_record(places));
    if (record.join.empty())
      return Error{
          Errc::not_found,
          fmt::format("{}: this node admits no others; run it on the first node of the cluster", places.settings)};
    WEFT_TRY(const setup::AdmissionKeys keys, setup::read_admission_keys(places.authority()));
    WEFT_TRY(const Digest key, setup::public_key_digest(keys.authority.files().certificate));
    WEFT_TRY(const setup::Token token,
             setup::make_token({key, record.join, now_ns() / 1'000'000'000 + token_.valid_s, token_.uses_count},
                               keys.token_key));
    print_token(context, token, token_);
    return kExitDone;
  }

 private:
  NodeOptions node_;
  TokenOptions token_;
};

}  // namespace

constinit const CommandEntry kClusterTokenCommand = {kClusterTokenInfo, make<ClusterTokenCommand>};

}  // namespace weft
