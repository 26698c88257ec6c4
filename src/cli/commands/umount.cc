#include <chrono>
#include <span>
#include <system_error>
#include <vector>

#include "base/short_text.h"
#include "cli/commands/commands.h"
#include "cli/shared/mounts.h"
#include "os/mount_users.h"
#include "os/programs.h"
#include "os/sys.h"

namespace weft {
namespace {

constexpr CommandInfo kUmountInfo = {
    .name = "umount",
    .summary = "unmount a store",
    .description =
        "Unmounts DIR, which must be a weft mount, and waits until its server has ended.\n"
        "The server then uses no file of the store any more. The mount of an ordinary user\n"
        "is unmounted by fusermount3. If files of the mount are open, or it holds a working\n"
        "directory, the command fails and names the processes. --lazy detaches the mount\n"
        "now, and the mount ends when nothing uses it. The command also removes a mount\n"
        "whose server or supervisor has died.\n",
    .examples = "weft umount /mnt/weft\n",
};

constexpr std::chrono::seconds kStatusPatience{3};
constexpr std::chrono::seconds kEndPatience{20};

class UmountCommand final : public Command {
 public:
  void declare(OptionSet& options) override {
    options.argument("DIR", directory_, OptionSet::Need::required, "the directory of the mount", {kOfferMounts});
    options.flag("-l,--lazy", lazy_, "detach the mount now, and end it when nothing uses it");
  }

  Result<int> run(Context& context) override {
    WEFT_TRY(const std::string path, mount_point_path(directory_));
    WEFT_TRY(const auto mounts, weft_mounts());
    const auto mount = top_mount(mounts, path);
    if (!mount) return Error{Errc::invalid, fmt::format("{}: no weft file system is mounted here", directory_)};
    const auto status = read_mount_status(path, kStatusPatience);
    const auto processes = status.ok() ? mount_processes(*status) : Result<MountProcesses>(status.error());
    const std::vector<Fd> ends = processes.ok() ? watch_processes(*processes) : std::vector<Fd>();
    WEFT_CHECK(take_away(context, *mount));
    if (!processes.ok() && processes.error().code != Errc::busy)
      context.note(fmt::format("{}: cleared a mount whose server was gone", directory_));
    else if (processes.ok() && processes->supervisor_pid == 0)
      context.note(fmt::format("{}: cleared a mount whose supervisor was gone", directory_));
    return lazy_ ? kExitDone : wait_for_server(*mount, ends);
  }

 private:
  Status take_away(const Context& context, const WeftMount& mount) const {
    Status done = unmount_directory(mount.directory, lazy_, fmt::format("{}: umount", directory_));
    if (done.ok()) return done;
    if (done.error().code == Errc::busy) return in_use(context, mount);
    if (done.error().code == Errc::permission) return by_fusermount(context, mount);
    return done;
  }

  Error in_use(const Context& context, const WeftMount& mount) const {
    const std::string users = describe_users(mount_users(mount));
    if (!users.empty())
      return Error{Errc::busy, fmt::format("{}: in use by {}; end them, or unmount with --lazy", directory_, users)};
    const std::string_view who = context.environment().is_root
                                     ? "something that /proc does not show here, such as a mount inside it"
                                     : "a process of another user; root sees which";
    return Error{Errc::busy, fmt::format("{}: in use by {}; unmount with --lazy", directory_, who)};
  }

  Result<int> wait_for_server(const WeftMount& mount, std::span<const Fd> ends) const {
    WEFT_TRY(const auto mounts, weft_mounts());
    for (const WeftMount& other : mounts)
      if (other.device == mount.device)
        return Error{Errc::busy,
                     fmt::format("{}: unmounted here, but the same mount is also at {}", directory_, other.directory)};
    if (wait_for_ends(ends, kEndPatience)) return kExitDone;
    return Error{Errc::busy, fmt::format("{}: unmounted, but its server still runs after {} s: the mount may be in use "
                                         "in another mount namespace",
                                         directory_, kEndPatience.count())};
  }

  Status by_fusermount(const Context& context, const WeftMount& mount) const {
    auto program = find_program(context.environment(), "fusermount3");
    if (!program)
      return Error{Errc::permission, fmt::format("{}: needs root or fusermount3, which was not found", directory_)};
    std::vector<std::string> words = {"fusermount3", "-u"};
    if (lazy_) words.push_back("-z");
    words.push_back("--");
    words.push_back(mount.directory);
    std::string errors;
    WEFT_TRY(const int code, run_program(*program, std::move(words), errors));
    if (code == 0) return {};
    if (errors.find(std::make_error_code(std::errc::device_or_resource_busy).message()) != std::string::npos)
      return in_use(context, mount);
    if (errors.find("not found in /etc/mtab") != std::string::npos)
      return Error{Errc::permission,
                   fmt::format("{}: another user mounted it; that user or root can unmount it", directory_)};
    return Error{Errc::permission, fmt::format("{}: {}", directory_, joined_lines(errors))};
  }

  std::string directory_;
  bool lazy_ = false;
};

}  // namespace

constinit const CommandEntry kUmountCommand = {kUmountInfo, make<UmountCommand>};

}  // namespace weft
