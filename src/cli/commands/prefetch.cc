#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/shared/daemon_call.h"
#include "cli/shared/table.h"
#include "daemon_api/control_messages.h"

namespace weft {
namespace {

constexpr CommandInfo kInfo = {
    .name = "prefetch",
    .summary = "bring a version's bytes to this node",
    .description =
        "Where a daemon serves the store, versions of other nodes are here by name, and\n"
        "their bytes come when they are read. This brings them now. Bytes that are here\n"
        "do not move again. With --layers only tensors of that name come, or of a layer\n"
        "of that name: a glob as in weft-find(7).\n",
    .examples =
        "weft prefetch llama@2\n"
        "weft prefetch llama --layers 'model.layers.[0-3]'\n",
    .json = "{files, bytes, moved_bytes}\n",
    .interrupted = "what has come stays",
};

class PrefetchCommand final : public Command {
 public:
  const CommandInfo& info() const override { return kInfo; }

  void declare(OptionSet& options) override {
    options.argument("MODEL[@V]", request_.spec, OptionSet::Need::required, "the version");
    options.value("--layers", "PATTERN", request_.layers, "only these layers or tensors");
  }

  Result<int> run(Context& context) override {
    WEFT_TRY(const auto report, call_daemon<FetchReport>(context, "prefetch", request_));
    if (context.json)
      context.print_json(encode_fields(report));
    else
      context.print("{}, {}; {} moved\n", count_of(report.files, "file"), human_bytes(report.bytes),
                    human_bytes(report.moved_bytes));
    return kExitDone;
  }

 private:
  PrefetchRequest request_;
};

}  // namespace

std::unique_ptr<Command> make_prefetch_command() {
  return std::make_unique<PrefetchCommand>();
}

}  // namespace weft
