#include "cli/commands/commands.h"
#include "weft/store/assembly.h"

namespace weft {
namespace {

constexpr CommandInfo kInitInfo = {
    .name = "init",
    .summary = "create an empty store",
    .description =
        "Creates a store in the directory that --store or WEFT_STORE names, which must be\n"
        "empty or not exist. `weft import` also creates a store. Only the owner of the\n"
        "store and the users of its group can open it. Other users read it through a\n"
        "mount of the owner or of root.\n"
        "\n"
        "Choose XFS or Btrfs for the store if you can: files in it then share blocks. On\n"
        "other file systems, a mount copies files of derived versions that are read again\n"
        "(`weft cache`), and init says so.\n",
    .examples =
        "weft init --store /srv/weft\n"
        "WEFT_STORE=/scratch/weft weft init\n",
    .json = "{store}\n",
};

class InitCommand final : public Command {
 public:
  void declare(OptionSet& options) override {
    options.value("--group", "NAME", group_, "give the store to this group, whose users may then read it",
                  {kOfferGroups});
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
    if (!context.quiet && !shares_blocks(context.store_path()))
      context.note(
          "the file system of the store cannot share blocks: a file of a derived version takes its size again while a "
          "mount keeps it assembled (weft cache); XFS and Btrfs share blocks");
    return kExitDone;
  }

 private:
  std::string group_;
};

}  // namespace

constinit const CommandEntry kInitCommand = {kInitInfo, make<InitCommand>};

}  // namespace weft
