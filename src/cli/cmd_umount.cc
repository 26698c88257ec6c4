#include <sys/mount.h>

#include <algorithm>
#include <cerrno>

#include "base/sys.h"
#include "cli/commands.h"
#include "cli/mounts.h"

namespace weft {
namespace {

constexpr CommandInfo kInfo = {
    .name = "umount",
    .summary = "unmount a mounted store",
    .description =
        "Unmounts DIR, which must be a weft mount. Who may not unmount by himself gets\n"
        "it done by fusermount3. A mount with open files or a working directory in it is\n"
        "in use; --lazy takes it out of the tree now and ends it when they are closed.\n",
    .examples = "weft umount /mnt/weft\n",
    .json = "",
    .interrupted = "",
};

class UmountCommand final : public Command {
 public:
  const CommandInfo& info() const override { return kInfo; }

  void declare(OptionSet& options) override {
    options.argument("DIR", directory_, OptionSet::Need::required, "where it is mounted");
    options.flag("-l,--lazy", lazy_, "detach it now, end it when it is no longer used");
  }

  Result<int> run(Context& context) override {
    WEFT_TRY(std::string path, mount_point_path(directory_));
    WEFT_TRY(auto mounts, weft_mounts());
    auto here = [&](const WeftMount& mount) { return mount.directory == path; };
    if (std::none_of(mounts.begin(), mounts.end(), here))
      return Error{Errc::invalid, fmt::format("{}: no weft file system is mounted here", directory_)};
    int flags = UMOUNT_NOFOLLOW | (lazy_ ? MNT_DETACH : 0);
    if (::umount2(path.c_str(), flags) == 0) return kExitDone;
    Error error = sys_error(errno, fmt::format("{}: umount", directory_));
    if (error.code == Errc::busy)
      return Error{error.code, fmt::format("{}: in use; close what is open in it, or unmount with --lazy", directory_)};
    if (error.code == Errc::permission) return by_fusermount(context, path);
    return error;
  }

 private:
  Result<int> by_fusermount(const Context& context, const std::string& path) const {
    auto program = find_program(context.environment(), "fusermount3");
    if (!program)
      return Error{Errc::permission, fmt::format("{}: needs root or fusermount3, which is not there", directory_)};
    std::vector<std::string> words = {*program, "-u"};
    if (lazy_) words.push_back("-z");
    words.push_back("--");
    words.push_back(path);
    WEFT_TRY(int code, run_program(std::move(words)));  // it says itself what is wrong
    return code == 0 ? kExitDone : kExitFailed;
  }

  std::string directory_;
  bool lazy_ = false;
};

}  // namespace

std::unique_ptr<Command> make_umount_command() {
  return std::make_unique<UmountCommand>();
}

}  // namespace weft
