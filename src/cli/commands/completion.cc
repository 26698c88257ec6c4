#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/shared/completions.h"

namespace weft {
namespace {

constexpr CommandInfo kCompletionInfo = {
    .name = "completion",
    .summary = "print the completion script of a shell",
    .examples =
        "source <(weft completion bash)\n"
        "weft completion zsh > ~/.zfunc/_weft\n"
        "weft completion fish > ~/.config/fish/completions/weft.fish\n",
};

class CompletionCommand final : public Command {
 public:
  void declare(OptionSet& options) override {
    options.argument("SHELL", shell_, OptionSet::Need::required, "bash, zsh or fish", {"bash", "zsh", "fish"});
  }

  Status check_usage() override {
    if (completions_for(shell_).empty())
      return Error{Errc::invalid, fmt::format("expected bash, zsh or fish, got {}", printable(shell_))};
    return {};
  }

  Result<int> run(Context& context) override {
    context.print("{}", completions_for(shell_));
    return kExitDone;
  }

 private:
  std::string shell_;
};

}  // namespace

constinit const CommandEntry kCompletionCommand = {kCompletionInfo, make<CompletionCommand>};

}  // namespace weft
