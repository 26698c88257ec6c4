#include "fuse/process/mounting.h"

#define FUSE_USE_VERSION 314
#include <fcntl.h>
#include <fmt/core.h>
#include <fuse.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/short_text.h"
#include "fuse/kernel/libfuse_log.h"
#include "fuse/process/mountpoint.h"
#include "fuse/process/server_process.h"
#include "os/entries.h"
#include "os/memory_file.h"
#include "os/mounts.h"

namespace weft {
namespace {

// Returns the mount on top at `directory`; nullopt if there is none or the list of mounts cannot be read.
std::optional<WeftMount> mount_at(const std::string& directory) {
  const auto mounts = weft_mounts();
  if (!mounts.ok()) return std::nullopt;
  return top_mount(*mounts, directory);
}

// Returns the stack depth for passthrough to files of the store. Call it before the mount, which answers nothing yet.
std::uint32_t depth_over(const std::string& store) {
  const auto directory = open_file(store, O_PATH | O_DIRECTORY);
  return directory.ok() && is_on_overlay(directory->get()) ? 2 : 1;
}

Result<Fd> mount_ourselves(const MountOptions& options, SharedHead& head) {
  WEFT_TRY(Fd device, open_fuse_device());
  head.init.stack_depth = depth_over(options.store);
  WEFT_CHECK(mount_device(device.get(), options));
  return device;
}

// Redirects the process's stderr to `file` while it lives.
class StderrTo {
 public:
  explicit StderrTo(int file) : before_(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0)) { ::dup2(file, STDERR_FILENO); }
  ~StderrTo() { ::dup2(before_.get(), STDERR_FILENO); }

 private:
  const Fd before_;
};

// Returns why fusermount3 did not mount, and what the user can do. `errors` is its stderr.
std::string fusermount_problem(const std::string& errors) {
  std::string text = joined_lines(errors);
  if (text.find("user_allow_other") != std::string::npos)
    return text + "; mount without allow_other, or have root add that line";
  if (text.empty()) text = last_libfuse_message();
  if (text.empty()) text = "no message; it comes with the package fuse3";
  return text;
}

// Needs a process with one thread: it redirects stderr.
Result<Fd> mount_by_fusermount(const MountOptions& options, SharedHead& head, std::string_view why) {
  WEFT_TRY(const Fd errors, memory_file("stderr of fusermount3"));
  const auto mount = [&options, &errors] {
    const StderrTo redirected(errors.get());
    return Fd(fuse_open_channel(options.directory.c_str(), fusermount_options(options).c_str()));
  };
  Fd device = mount();
  if (!device.valid())
    return Error{Errc::permission, fmt::format("mounting on {} by fusermount3: {}", options.directory,
                                               fusermount_problem(message_in(errors)))};
  keep_private(device.get());
  head.mounted_by = MountedBy::fusermount;
  head.init.stack_depth = 0;
  set_shared_text(head.passthrough_refused, why);
  return device;
}

Result<Fd> mount_either_way(const MountOptions& options, SharedHead& head) {
  if (::geteuid() != 0) return mount_by_fusermount(options, head, "only root can mount with it");
  auto mounted = mount_ourselves(options, head);
  if (mounted.ok() || mounted.error().code != Errc::permission || !options.security.empty()) return mounted;
  auto otherwise = mount_by_fusermount(options, head, "root may not mount here; fusermount3 did");
  return otherwise.ok() ? std::move(otherwise) : std::move(mounted);
}

// Returns "major:minor" of the only mount at `directory` that is not in `before`; "" if that is ambiguous.
std::string new_device(const std::string& directory, const std::vector<WeftMount>& before) {
  const auto after = weft_mounts();
  if (!after.ok()) return "";
  const auto is_new = [&](const WeftMount& mount) {
    return mount.directory == directory && std::ranges::find(before, mount.device, &WeftMount::device) == before.end();
  };
  const auto found = std::ranges::find_if(*after, is_new);
  if (found == after->end() || std::any_of(found + 1, after->end(), is_new)) return "";
  return found->device;
}

// Applies the option passthrough=off: neither the kernel nor a server is asked for it.
void leave_passthrough_out(SharedHead& head) {
  head.init.stack_depth = 0;
  set_shared_text(head.passthrough_refused, "the mount has the option passthrough=off");
}

short events_of(int device) {
  pollfd state{device, POLLIN, 0};
  return ::poll(&state, 1, 0) < 0 ? POLLERR : state.revents;
}

// Reads FUSE_INIT from a descriptor that was passed. The mount may have a server already. The kernel then refuses the
// buffer of keep_init() as too small, and that server loses no request, unless it accepts only writes below 8 KiB.
Status keep_passed_init(int device, InitWords& words) {
  const Error served{Errc::invalid, "its mount has a server already: the kernel's first request was read before"};
  if (events_of(device) == 0) return served;
  Status kept = keep_init(device, words);
  if (kept.ok()) return kept;
  switch (kept.error().os_error) {
    case 0:
    case EAGAIN:
    case EINVAL:
      return served;
    case EPERM:
      return Error{Errc::invalid, "nothing is mounted with this descriptor; mount first, then pass it on"};
    case ENODEV:
    case ECONNABORTED:
      return Error{Errc::invalid, "its mount is gone"};
    default:
      return kept;
  }
}

}  // namespace

Result<Fd> mount_new(const MountOptions& options, SharedHead& head) {
  keep_libfuse_messages();
  const auto before = weft_mounts();
  WEFT_TRY(Fd device, mount_either_way(options, head));
  if (!options.passthrough) leave_passthrough_out(head);
  if (before.ok()) set_shared_text(head.mount_device, new_device(options.directory, *before));
  head.init.id_maps = options.allows_id_maps() ? 1 : 0;
  Status kept = keep_init(device.get(), head.init);
  if (kept.ok()) return device;
  unmount(options, head);
  return std::move(kept).error();
}

// The process that mounted chose the options of the mount, so they may lack default_permissions, without which the
// kernel breaks the connection of a server that allows id mappings.
Result<Fd> adopt_mount(Fd device, const MountOptions& options, SharedHead& head) {
  head.mounted_by = MountedBy::other_process;
  head.init.id_maps = 0;
  set_shared_text(head.mount_device, served_device(device.get()));
  if (::geteuid() == 0)
    head.init.stack_depth = depth_over(options.store);
  else
    set_shared_text(head.passthrough_refused, "only root can register files for it");
  if (!options.passthrough) leave_passthrough_out(head);
  if (const Status kept = keep_passed_init(device.get(), head.init); !kept.ok())
    return Error{kept.error().code, fmt::format("mount point {}: {}", options.directory, kept.error().message)};
  ::fcntl(device.get(), F_SETFL, O_RDWR);  // servers wait for requests
  return device;
}

void unmount(const MountOptions& options, const SharedHead& head) {
  if (head.mounted_by == MountedBy::other_process) return;
  const std::string ours = shared_text(head.mount_device);
  if (!ours.empty()) {
    const auto mount = mount_at(options.directory);
    if (!mount || mount->device != ours) return;
  }
  if (head.mounted_by == MountedBy::fusermount)
    unmount_by_fusermount(options.directory);
  else
    force_unmount(options.directory);
}

// While the connection lives, its device number is not reused. So a file opened before the check of the connection
// belongs to this mount.
Status set_read_ahead(int device, const SharedHead& head, unsigned kilobytes) {
  const std::string number = shared_text(head.mount_device);
  if (number.empty()) return Error{Errc::unsupported, "the device number of this mount is not known"};
  const std::string path = fmt::format("/sys/class/bdi/{}/read_ahead_kb", number);
  WEFT_TRY(const Fd file, open_file(path, O_WRONLY));
  if (disconnected(device)) return Error{Errc::io, fmt::format("{}: the mount is gone", path)};
  const std::string text = std::to_string(kilobytes);
  return append_exact(file.get(), std::as_bytes(std::span(text)), path);
}

bool disconnected(int device) {
  return (events_of(device) & (POLLERR | POLLNVAL)) != 0;
}

bool requests_wait(int device) {
  return (events_of(device) & POLLIN) != 0;
}

}  // namespace weft
