#include "program.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <ostream>

#include "background.h"
#include "base/log.h"
#include "base/sys.h"
#include "mountpoint.h"
#include "options.h"
#include "serve.h"
#include "weft/store.h"
#include "weft/vfs.h"

namespace weft {
namespace {

Caller this_caller() {
  const char* store = std::getenv("WEFT_STORE");
  return {::getuid(), ::getgid(), store == nullptr ? "" : store};
}

// Paths must still lead there from "/".
Status settle_paths(MountOptions& options) {
  const std::unique_ptr<char, void (*)(void*)> store(::realpath(options.store.c_str(), nullptr), std::free);
  if (!store) return sys_error(errno, "store " + options.store);
  options.store = store.get();
  WEFT_TRY(options.directory, usable_mountpoint(options.directory));
  if (!options.log_file.empty()) {
    std::error_code failed;
    options.log_file = std::filesystem::absolute(options.log_file, failed).string();
    if (failed) return sys_error(failed.value(), "log file");
  }
  return {};
}

Status serve_store(const MountOptions& options, const std::function<void()>& ready) {
  block_stop_signals();
  raise_file_limit();
  WEFT_CHECK(log_setup(options.log_file, options.log_level, "mount.weft"));
  WEFT_TRY(const auto store, Store::open(options.store, OpenOptions{}));
  const auto vfs = Vfs::make(*store, VfsOptions{options.show_views, ""});
  return serve(*vfs, options, ready);
}

Status mount_store(MountOptions options) {
  WEFT_CHECK(settle_paths(options));
  // In the background stderr is somebody's terminal: the outcome goes there, messages do not.
  if (!options.foreground && options.log_file.empty()) options.log_file = "/dev/null";
  const auto work = [&options](const std::function<void()>& ready) { return serve_store(options, ready); };
  return options.foreground ? work([] {}) : run_in_background(work);
}

}  // namespace

int run_mount(std::span<const char* const> arguments, std::ostream& out, std::ostream& err) {
  const auto line = parse_command_line(arguments, this_caller());
  if (!line.ok()) {
    err << "mount.weft: " << line.error().message << "\nTry 'mount.weft --help'.\n";
    return 2;
  }
  if (line->action == Action::help) out << help_text();
  if (line->action == Action::version) out << "mount.weft " << WEFT_VERSION << '\n';
  if (line->action != Action::mount) return 0;
  const Status mounted = mount_store(line->mount);
  if (mounted.ok()) return 0;
  err << "mount.weft: " << mounted.error().message << '\n';
  return 1;
}

}  // namespace weft
