#include "cli/commands/commands.h"

namespace weft {
namespace {

constexpr CommandInfo kInfo = {
    .name = "init",
    .summary = "create an empty store",
    .description =
        "Creates a store in the directory that --store or WEFT_STORE names, which must be\n"
        "empty or not exist. `weft import` also creates a store. Only the owner of the\n"
        "store and the users of its group can open it. Other users read it through a\n"
        "mount of the owner or of root.\n",
    .examples =
        "weft init --store /srv/weft\n"
        "WEFT_STORE=/scratch/weft weft init\n",
    .json = "{store}\n",
};

class InitCommand final : public Command {
 public:
  void declare(OptionSet& options) override {
    options.value("--group", "NAME", group_, "give the store to this group, whose users may then read it");
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

constinit const CommandEntry kInitCommand = {kInfo, make<InitCommand>};

}  // namespace weft
