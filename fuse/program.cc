#include "fuse/program.h"

#include <fmt/core.h>
#include <malloc.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iostream>
#include <span>
#include <system_error>

#include "base/log.h"
#include "base/text.h"
#include "base/version/version.h"
#include "fuse/announce/announcer.h"
#include "fuse/process/announcer_process.h"
#include "fuse/process/background.h"
#include "fuse/process/channel.h"
#include "fuse/process/mountpoint.h"
#include "fuse/process/options.h"
#include "fuse/process/supervisor.h"
#include "fuse/serve.h"
#include "os/beneath.h"
#include "os/entries.h"
#include "os/mounts.h"
#include "os/programs.h"
#include "os/sys.h"
#include "weft/bytes/cold.h"
#include "weft/programs/mount_figures.h"
#include "weft/programs/vfs.h"
#include "weft/store/publish.h"
#include "weft/store/store.h"

namespace weft {
namespace {

// Exit codes that mount(8) defines. It passes ours on.
constexpr int kUsage = 1;
constexpr int kMountFailed = 32;

constexpr char kOwnProgram[] = "/proc/self/exe";  // valid even if the file was replaced

Caller this_caller() {
  const char* store = std::getenv("WEFT_STORE");
  return {::getuid(), ::getgid(), store == nullptr ? "" : store};
}

bool is_or_lies_below(const std::string& path, const std::string& directory) {
  return path == directory || directory == "/" || path.starts_with(directory + '/');
}

// A server that reached its store through its own mount would wait for itself for ever.
Status check_apart(const MountOptions& options) {
  if (!is_or_lies_below(options.store, options.directory) && !is_or_lies_below(options.directory, options.store))
    return {};
  return Error{Errc::invalid, fmt::format("mount point {}: expected a directory that neither holds the store {} nor "
                                          "lies in it",
                                          options.directory, options.store)};
}

// Takes over the descriptor of "/dev/fd/N". Replaces that name by the directory of the mount, if this process sees it.
Result<Fd> take_passed(MountOptions& options) {
  WEFT_TRY(Fd device, take_descriptor(options.directory));
  const std::string directory = directory_of_device(served_device(device.get()));
  if (!directory.empty()) options.directory = directory;
  return device;
}

// Makes all paths valid from "/", the working directory of the background process. `is_mounted`: another process
// mounted.
Status resolve_paths(MountOptions& options, bool is_mounted) {
  if (is_mounted) WEFT_CHECK(check_store_answers(options.store, options.directory));
  std::error_code failed;
  const auto store = std::filesystem::canonical(options.store, failed);
  if (failed) return sys_error(failed.value(), "store " + options.store);
  options.store = store.string();
  Mountpoint place{options.directory, ""};
  if (!is_mounted) {
    WEFT_TRY(place, usable_mountpoint(options.directory, options.non_empty));
  }
  options.directory = place.path;
  WEFT_CHECK(check_apart(options));
  if (!place.cleared.empty()) std::cerr << "mount.weft: " << printable_lines(place.cleared) << '\n' << std::flush;
  if (!options.log_file.empty()) {
    options.log_file = std::filesystem::absolute(options.log_file, failed).string();
    if (failed) return sys_error(failed.value(), "log file");
  }
  return {};
}

// Sets up signals and logging. In the background stderr may be a terminal: only the outcome goes there, no messages.
Status set_up_process(const MountOptions& options) {
  block_signals();
  ::prctl(PR_SET_NAME, "mount.weft");
  const bool nowhere = !options.foreground && options.log_file.empty();
  return log_setup(nowhere ? "/dev/null" : options.log_file, options.log_level, "mount.weft");
}

// Returns the store's file of open versions. If the file is missing, the error of Store::open() is clearer.
Result<Fd> open_versions_of(const std::string& store) {
  auto fd = open_versions_file(store);
  if (fd.ok() || fd.error().code != Errc::not_found) return fd;
  const auto opened = Store::open(store, {});
  return opened.ok() ? std::move(fd).error() : opened.error();
}

// Drafts are files in the store, and are published there, so the user needs write access.
Status check_may_publish(const MountOptions& options) {
  const Status may = options.publish ? may_write_directory(options.store) : Status{};
  if (may.ok()) return {};
  return Error{may.error().code,
               "this user cannot write to the store " + may.error().message + "; mount without publish"};
}

Status mount_store(MountOptions options) {
  Fd passed;
  if (names_descriptor(options.directory)) {
    WEFT_TRY(passed, take_passed(options));
  }
  WEFT_CHECK(resolve_paths(options, passed.valid()));
  WEFT_TRY(Fd open_versions, open_versions_of(options.store));
  WEFT_CHECK(check_may_publish(options));
  const auto work = [&](const std::function<void()>& ready) -> Status {
    WEFT_CHECK(set_up_process(options));
    return Supervisor(options, exec_launcher(kOwnProgram, options), std::move(open_versions),
                      announcer_launcher(kOwnProgram, options))
        .run(ready, std::move(passed));
  };
  return options.foreground ? work([] {}) : run_in_background(work);
}

Status go_on_supervising(const MountOptions& options, const InheritedEnds& inherited) {
  for (const int fd :
       {inherited.device, inherited.state, inherited.open, inherited.channel, inherited.door, inherited.client})
    keep_private(fd);
  WEFT_CHECK(set_up_process(options));
  return Supervisor(options, exec_launcher(kOwnProgram, options), Fd(inherited.open),
                    announcer_launcher(kOwnProgram, options))
      .resume(inherited);
}

// Limits malloc: sixteen threads would each keep an arena, and large lists would stay allocated.
void keep_memory_small() {
  ::mallopt(M_ARENA_MAX, 2);
  ::mallopt(M_MMAP_THRESHOLD, 256 << 10);
  ::mallopt(M_TRIM_THRESHOLD, 256 << 10);
}

Status open_and_serve(const MountOptions& options, const ServerEnds& ends) {
  for (const int fd : {ends.channel, ends.state, ends.open}) keep_private(fd);
  WEFT_CHECK(set_up_process(options));
  keep_memory_small();
  raise_file_limit();
  OpenOptions reading;
  reading.open_versions = ends.open;
  WEFT_TRY(const auto store, Store::open(options.store, reading));
  // Without a cluster no node has more bytes.
  const auto cold = make_cold_client(options.store, store->cluster().has_value());
  const auto vfs = Vfs::make(*store, VfsOptions{cold.get(), options.cold, options.publish});
  const auto rights = make_publish_rights(options.store);
  const auto reports = make_mount_reports(options.store);
  return serve(*vfs, *rights, *reports, cold.get(), options, ends);
}

// Runs the announcer. It is killed by its supervisor, or dies with it; a signal from a terminal is left to the
// supervisor.
Status announce_store(const MountOptions& options, int state) {
  keep_private(state);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  WEFT_CHECK(set_up_process(options));
  reopen_log_at_hangup();
  WEFT_TRY(SharedState shared, SharedState::attach(Fd(state)));
  WEFT_TRY(const auto store, Store::open(options.store, {}));
  Status announced = announce(*store, options, shared.head());
  if (!announced.ok()) log_error("the announcer: {}", announced.error().message);
  return announced;
}

// Serves, and reports a failure to the supervisor.
Status serve_store(const MountOptions& options, const ServerEnds& ends) {
  const Result<Fd> channel = duplicate(ends.channel, "the channel to the supervisor");
  Status served = open_and_serve(options, ends);
  if (served.ok() || !channel.ok()) return served;
  const Status said = say(channel->get(), Say::failed, served.error().message);
  return said.ok() ? served : said;
}

Status act(const CommandLine& line) {
  if (line.mount.trust_store) trust_all_owners();
  switch (line.action) {
    case Action::help:
      std::cout << help_text();
      return {};
    case Action::version:
      std::cout << "mount.weft " << version_text() << ", " << own_program() << '\n';
      return {};
    case Action::mount:
      return mount_store(line.mount);
    case Action::serve:
      return serve_store(line.mount, line.ends);
    case Action::announce:
      return announce_store(line.mount, line.announced_state);
    case Action::supervise:
      return go_on_supervising(line.mount, line.inherited);
  }
  return {};
}

}  // namespace

int mount_main(std::span<const char* const> arguments) {
  survive_size_limit();
  const auto line = parse_command_line(arguments, this_caller());
  if (!line.ok()) {
    std::cerr << "mount.weft: " << printable_lines(line.error().message) << " (mount.weft --help lists the options)\n";
    return kUsage;
  }
  const Status done = act(*line);
  if (done.ok()) return 0;
  std::cerr << "mount.weft: " << printable_lines(done.error().message) << '\n';
  return kMountFailed;
}

}  // namespace weft
