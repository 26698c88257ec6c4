#include <algorithm>
#include <filesystem>
#include <string>

#include "cli/commands/commands.h"
#include "cli/shared/mounts.h"
#include "os/programs.h"
#include "os/sys.h"
#include "weft/result.h"
#include "weft/store/store.h"
#include "weft/store/walk.h"

namespace weft {
namespace {

constexpr char kMountProgram[] = "mount.weft";

constexpr CommandInfo kMountInfo = {
    .name = "mount",
    .summary = "mount the store as a file tree",
    .description =
        "Runs mount.weft and returns when the mount answers. The last line of output\n"
        "suggests a first command.\n"
        "\n"
        "With /dev/fd/N, another program has mounted and passes its open descriptor N of\n"
        "/dev/fuse. The command then serves that mount, which needs no privilege.\n"
        "\n"
        "weft looks for mount.weft in its own directory, in the sbin and bin beside that,\n"
        "along PATH, and in /usr/sbin and /sbin. mount.weft(8) describes the options.\n"
        "`mount -t weft STORE DIR` and a line in /etc/fstab do the same.\n"
        "\n"
        "--upgrade replaces the program of the live mount DIR with the mount.weft that\n"
        "weft finds. Open files stay open.\n",
    .examples =
        "weft mount /mnt/weft\n"
        "weft mount /mnt/weft -o allow_other,attr_timeout=1\n"
        "weft mount ~/models --foreground\n"
        "weft mount --upgrade /mnt/weft\n",
};

constexpr std::chrono::seconds kPatience{10};  // longest wait for the status of a live mount

class MountCommand final : public Command {
 public:
  void declare(OptionSet& options) override {
    options.argument("DIR", directory_, OptionSet::Need::required, "the directory to mount on, or /dev/fd/N");
    options.values("-o,--options", "OPTIONS", options_, "mount options, separated by commas");
    options.flag("--upgrade", upgrade_, "replace the program of the live mount DIR");
    options.flag("-f,--foreground", foreground_, "stay in the foreground until it is unmounted");
  }

  Result<int> run(Context& context) override {
    const auto program = find_program(context.environment(), kMountProgram);
    if (!program)
      return Error{Errc::not_found, "mount.weft: not found beside weft, along PATH, in /usr/sbin or in /sbin"};
    if (upgrade_) return upgrade(context, *program);
    if (names_descriptor(directory_)) WEFT_CHECK(check_store_answers(context.store_path(), directory_));
    WEFT_TRY(std::string store, absolute_store(context));
    std::vector<std::string> words = {kMountProgram, store, directory_};
    if (foreground_) words.push_back("-f");
    if (context.trusts_store()) words.insert(words.end(), {"-o", "trust_store"});
    for (const std::string& option : options_) {
      words.push_back("-o");
      words.push_back(option);
    }
    context.environment().out.flush();
    if (foreground_) return become_program(*program, std::move(words));
    WEFT_TRY(const int code, run_program(*program, std::move(words)));
    const bool has_path = !names_descriptor(directory_);
    if (code == kExitDone && has_path && !context.quiet) WEFT_CHECK(print_hint(context));
    return code;
  }

 private:
  // Suggests a first command, for a model or a data set that exists.
  Status print_hint(const Context& context) const {
    WEFT_TRY(const auto store, context.open_to_read());
    WEFT_TRY(const auto model, first_live_model(*store));
    if (!model)
      context.print("the store has no model yet; try: weft import PATH --name MODEL\n");
    else
      context.print("try: ls {}/{}/{}/latest\n", directory_, model->kind == VersionKind::model ? "layers" : "datasets",
                    model->name);
    return {};
  }

  static Result<std::optional<ModelRow>> first_live_model(Store& store) {
    std::optional<ModelRow> first;
    WEFT_CHECK(walk(store, [&](auto now, std::string_view from) -> Result<std::string> {
      WEFT_TRY(Page<ModelRow> page, now->models(from));
      const auto live = std::ranges::find_if(page.rows, [](const ModelRow& model) { return model.latest != 0; });
      if (live == page.rows.end()) return std::move(page.next);
      first = *live;
      return std::string();
    }));
    return first;
  }

  Result<int> upgrade(const Context& context, const std::string& program) const {
    if (foreground_ || !options_.empty())
      return Error{Errc::invalid, "--upgrade: the mount keeps its options; expected DIR alone"};
    WEFT_TRY(const std::string path, mount_point_path(directory_));
    WEFT_TRY(const auto mounts, weft_mounts());
    if (!top_mount(mounts, path))
      return Error{Errc::invalid, fmt::format("{}: no weft file system is mounted here", directory_)};
    WEFT_TRY(const std::string status, read_mount_status(path, kPatience));
    WEFT_TRY(const MountProcesses processes, mount_processes(status));
    std::error_code error;
    const auto absolute = std::filesystem::canonical(program, error);
    if (error) return sys_error(error.value(), program);
    if (const Status done = upgrade_mount(processes.control, absolute.string()); !done.ok())
      return Error{done.error().code, fmt::format("{}: upgrade: {}", directory_, done.error().message)};
    if (!context.quiet) context.print("{}: served by {}\n", directory_, absolute.string());
    return kExitDone;
  }

  // Returns an absolute path: the server changes its working directory, so a relative path would be wrong.
  static Result<std::string> absolute_store(const Context& context) {
    WEFT_CHECK(context.open_to_read());
    std::error_code error;
    auto path = std::filesystem::canonical(context.store_path(), error);
    if (error) return sys_error(error.value(), context.store_path());
    return path.string();
  }

  std::string directory_;
  std::vector<std::string> options_;
  bool upgrade_ = false;
  bool foreground_ = false;
};

}  // namespace

constinit const CommandEntry kMountCommand = {kMountInfo, make<MountCommand>};

}  // namespace weft
