#include "cli/commands/commands.h"

namespace weft {
namespace {

constexpr CommandInfo kInfo = {
    .name = "init",
    .summary = "make an empty store",
    .description =
        "Makes a store where --store or WEFT_STORE says, in a directory that is empty or\n"
        "not there. `weft import` does it by itself. Only its owner can open the store,\n"
        "and users of its group; --group gives it to another group. Other users read it\n"
        "through a mount of its owner or of root.\n",
    .examples =
        "weft init --store /srv/weft\n"
        "WEFT_STORE=/scratch/weft weft init\n",
    .json = "{store}\n",
    .interrupted = "",
};

class InitCommand final : public Command {
 public:
  const CommandInfo& info() const override { return kInfo; }
  void declare(OptionSet& options) override {
    options.value("--group", "NAME", group_, "a group whose users may read the store too");
  }

  Result<int> run(Context& context) override {
    WEFT_CHECK(context.create({{}, group_}));
    if (context.json) {
      JsonWriter json;
      json.begin_object().member("store", context.store_path()).end_object();
      context.print_json(json);
    } else if (!context.quiet) {
      context.print("made a store in {}\n", context.store_path());
    }
    return kExitDone;
  }

 private:
  std::string group_;
};

}  // namespace

std::unique_ptr<Command> make_init_command() {
  return std::make_unique<InitCommand>();
}

}  // namespace weft
