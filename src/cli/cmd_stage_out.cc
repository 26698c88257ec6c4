#include "cli/commands.h"
#include "cli/daemon_call.h"

namespace weft {
namespace {

constexpr CommandInfo kInfo = {
    .name = "stage-out",
    .summary = "wait until what was published here is at the origin",
    .description =
        "The daemon takes what is published on its node to the origin, behind the\n"
        "publish. This waits until a version is there, before others, or all of them.\n",
    .examples =
        "weft stage-out llama@2\n"
        "weft stage-out\n",
    .json = "{staged: true}\n",
    .interrupted = "the daemon goes on",
};

class StageOutCommand final : public Command {
 public:
  const CommandInfo& info() const override { return kInfo; }

  void declare(OptionSet& options) override {
    options.argument("MODEL[@V]", spec_, OptionSet::Need::optional, "the version; all of this node by default");
  }

  Result<int> run(Context& context) override {
    JsonWriter body;
    body.begin_object();
    if (!spec_.empty()) body.member("spec", spec_);
    WEFT_CHECK(ask_with_progress(context, "stage_out", body.end_object().text()));
    if (context.json)
      context.print_json(JsonWriter().begin_object().member("staged", true).end_object());
    else if (!context.quiet)
      context.print("{} at the origin\n", spec_.empty() ? "everything is" : spec_ + " is");
    return kExitDone;
  }

 private:
  std::string spec_;
};

}  // namespace

std::unique_ptr<Command> make_stage_out_command() {
  return std::make_unique<StageOutCommand>();
}

}  // namespace weft
