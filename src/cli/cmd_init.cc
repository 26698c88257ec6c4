#include "base/text.h"
#include "cli/commands.h"

namespace weft {
namespace {

constexpr CommandInfo kInfo = {
    .name = "init",
    .summary = "make an empty store",
    .description =
        "Makes a store where --store or WEFT_STORE says, in a directory that is empty or\n"
        "not there. `weft import` does it by itself with the defaults. With --digest none\n"
        "content is compared byte by byte in place of being named by a SHA-256: faster to\n"
        "publish, but the XXH3-128 alone, a checksum and no proof, tells later whether the\n"
        "bytes are right, and the store cannot join others. Only its owner can open the\n"
        "store, and users of its group; --group gives it to another group. Other users\n"
        "read it through a mount of its owner or of root.\n",
    .examples =
        "weft init --store /srv/weft\n"
        "WEFT_STORE=/scratch/weft weft init --digest none\n",
    .json = "{store, digest}\n",
    .interrupted = "",
};

class InitCommand final : public Command {
 public:
  const CommandInfo& info() const override { return kInfo; }

  void declare(OptionSet& options) override {
    options.value("--digest", "MODE", digest_, "tree-sha256 (the default) or none");
    options.value("--group", "NAME", group_, "a group whose users may read the store too");
  }

  Status check_usage() const override {
    if (digest_ != "tree-sha256" && digest_ != "none")
      return Error{Errc::invalid, fmt::format("--digest: expected tree-sha256 or none, got {}", printable(digest_))};
    return {};
  }

  Result<int> run(Context& context) override {
    WEFT_CHECK(context.create({digest_ == "none" ? DigestMode::none : DigestMode::tree_sha256, {}, group_}));
    if (context.json) {
      JsonWriter json;
      json.begin_object().member("store", context.store_path()).member("digest", digest_).end_object();
      context.print_json(json);
    } else if (!context.quiet) {
      context.print("made a store in {}\n", context.store_path());
    }
    return kExitDone;
  }

 private:
  std::string digest_ = "tree-sha256";
  std::string group_;
};

}  // namespace

std::unique_ptr<Command> make_init_command() {
  return std::make_unique<InitCommand>();
}

}  // namespace weft
