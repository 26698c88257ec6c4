#include <fmt/core.h>

#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/shared/daemon_call.h"
#include "cli/shared/table.h"
#include "daemon_api/control_messages.h"

namespace weft {
namespace {

constexpr CommandInfo kPrefetchInfo = {
    .name = "prefetch",
    .summary = "fetch the bytes of a version to this node",
    .description =
        "In a cluster, a node fetches bytes from other nodes or from the origin when they\n"
        "are read. prefetch fetches all bytes of a version now. Bytes that are already\n"
        "local are not fetched again. With --layers, only tensors whose name, or the name\n"
        "of one of their layers, matches PATTERN are fetched; weft-find(7) describes the\n"
        "patterns.\n",
    .examples =
        "weft prefetch llama@2\n"
        "weft prefetch llama --layers 'model.layers.[0-3]'\n",
    .json = "{files, bytes, moved_bytes, held_by}\n",
    .interrupted = "bytes that were fetched stay",
};

class PrefetchCommand final : public Command {
 public:
  void declare(OptionSet& options) override {
    options.argument("MODEL[@V]", request_.spec, OptionSet::Need::required, "the version");
    options.value("--layers", "PATTERN", request_.layers, "fetch only these layers or tensors");
  }

  Result<int> run(Context& context) override {
    WEFT_TRY(const auto report, call_daemon<FetchReport>(context, "prefetch", request_));
    if (context.json)
      context.print_json(encode_fields(report));
    else
      context.print("{}, {}; {} moved{}\n", count_of(report.files, "file"), human_bytes(report.bytes),
                    human_bytes(report.moved_bytes),
                    report.held_by.empty() ? "" : fmt::format("; held back by {}", report.held_by));
    return kExitDone;
  }

 private:
  PrefetchRequest request_;
};

}  // namespace

constinit const CommandEntry kPrefetchCommand = {kPrefetchInfo, make<PrefetchCommand>};

}  // namespace weft
