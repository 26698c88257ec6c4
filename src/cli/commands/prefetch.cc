#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/shared/daemon_call.h"
#include "cli/shared/table.h"

namespace weft {
namespace {

constexpr CommandInfo kInfo = {
    .name = "prefetch",
    .summary = "bring a version's bytes to this node",
    .description =
        "Where a daemon serves the store, versions of other nodes are here by name, and\n"
        "their bytes come when they are read. This brings them now. Bytes that are here\n"
        "do not move again. With --layers only tensors of that name come, or of a layer\n"
        "of that name: a pattern as of the shell.\n",
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
    options.argument("MODEL[@V]", spec_, OptionSet::Need::required, "the version");
    options.value("--layers", "PATTERN", layers_, "only these layers or tensors");
  }

  Result<int> run(Context& context) override {
    JsonWriter body;
    body.begin_object().member("spec", spec_).member("layers", layers_).end_object();
    WEFT_TRY(const JsonValue answer, ask_with_progress(context, "prefetch", body.text()));
    WEFT_TRY(const std::uint64_t files, answer.number("files"));
    WEFT_TRY(const std::uint64_t bytes, answer.number("bytes"));
    WEFT_TRY(const std::uint64_t moved, answer.number("moved_bytes"));
    if (context.json) {
      JsonWriter json;
      json.begin_object().member("files", files).member("bytes", bytes).member("moved_bytes", moved).end_object();
      context.print_json(json);
    } else {
      context.print("{}, {}; {} moved\n", count_of(files, "file"), human_bytes(bytes), human_bytes(moved));
    }
    return kExitDone;
  }

 private:
  std::string spec_;
  std::string layers_;
};

}  // namespace

std::unique_ptr<Command> make_prefetch_command() {
  return std::make_unique<PrefetchCommand>();
}

}  // namespace weft
