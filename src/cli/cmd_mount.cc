#include <filesystem>

#include "base/sys.h"
#include "cli/commands.h"
#include "cli/mounts.h"

namespace weft {
namespace {

constexpr CommandInfo kInfo = {
    .name = "mount",
    .summary = "mount the store as a file tree",
    .description =
        "Runs mount.weft, found beside this program, along PATH or in /sbin, and returns\n"
        "when the mount answers. mount.weft(8) describes the options; `mount -t weft\n"
        "STORE DIR` and a line in /etc/fstab do the same.\n",
    .examples =
        "weft mount /mnt/weft\n"
        "weft mount /mnt/weft -o allow_other,views=hidden\n"
        "weft mount ~/models --foreground\n",
    .json = "",
    .interrupted = "",
};

class MountCommand final : public Command {
 public:
  const CommandInfo& info() const override { return kInfo; }

  void declare(OptionSet& options) override {
    options.argument("DIR", directory_, OptionSet::Need::required, "an empty directory to mount on");
    options.values("-o,--options", "OPTIONS", options_, "mount options, separated by commas");
    options.flag("-f,--foreground", foreground_, "stay in the foreground until it is unmounted");
  }

  Result<int> run(Context& context) override {
    auto program = find_program(context.environment(), "mount.weft");
    if (!program)
      return Error{Errc::not_found, "mount.weft: not found beside weft, along PATH, in /usr/sbin or in /sbin"};
    WEFT_TRY(std::string store, absolute_store(context));
    std::vector<std::string> words = {*program, store, directory_};
    if (foreground_) words.push_back("-f");
    for (const std::string& option : options_) {
      words.push_back("-o");
      words.push_back(option);
    }
    context.environment().out.flush();
    return become_program(std::move(words));
  }

 private:
  // The server leaves this directory, so a relative path would lead elsewhere.
  static Result<std::string> absolute_store(const Context& context) {
    WEFT_CHECK(context.open_to_read());
    std::error_code error;
    auto path = std::filesystem::canonical(context.store_path(), error);
    if (error) return sys_error(error.value(), context.store_path());
    return path.string();
  }

  std::string directory_;
  std::vector<std::string> options_;
  bool foreground_ = false;
};

}  // namespace

std::unique_ptr<Command> make_mount_command() {
  return std::make_unique<MountCommand>();
}

}  // namespace weft
