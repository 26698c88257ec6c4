#include "mountpoint.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/magic.h>
#include <mntent.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "server.h"

namespace weft {
namespace {

constexpr char kType[] = "fuse.weft";

bool is_weft_mount(const std::string& directory) {
  const std::unique_ptr<FILE, int (*)(FILE*)> mounts(::setmntent("/proc/self/mounts", "re"), ::endmntent);
  if (!mounts) return false;
  mntent entry{};
  char buffer[4 * PATH_MAX];
  bool found = false;  // the last mount on a directory is the one that shows
  while (::getmntent_r(mounts.get(), &entry, buffer, sizeof buffer) != nullptr)
    if (directory == entry.mnt_dir) found = std::string_view(entry.mnt_type) == kType;
  return found;
}

// Does the kernel have to check modes? Where everybody may read everything, it need not, and then a write is answered
// with EROFS for every user, and a path walk needs no fresh attributes.
bool modes_restrict(const MountOptions& options) {
  return (options.umask & 0555U) != 0;
}

// A comma would end libfuse's option, a backslash is its escape.
std::string escape_option(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == ',' || c == '\\') out.push_back('\\');
    out.push_back(c);
  }
  return out;
}

}  // namespace

Result<std::string> usable_mountpoint(const std::string& directory) {
  const std::unique_ptr<char, void (*)(void*)> real(::realpath(directory.c_str(), nullptr), std::free);
  if (!real) {
    if (errno == ENOTCONN)
      return Error{Errc::busy, fmt::format("{}: a mount whose server is gone; unmount it first", directory)};
    return sys_error(errno, fmt::format("mount point {}", directory));
  }
  std::string path = real.get();
  WEFT_TRY(const auto facts, stat_file(path));
  if (!S_ISDIR(facts.st_mode)) return Error{Errc::not_dir, fmt::format("mount point {}: not a directory", directory)};
  if (is_weft_mount(path)) return Error{Errc::busy, fmt::format("mount point {}: in use by a weft mount", directory)};
  return path;
}

Result<Fd> open_fuse_device() {
  return open_file("/dev/fuse", O_RDWR | O_CLOEXEC);
}

Status mount_device(int device, const MountOptions& options) {
  const std::string data = fmt::format("fd={},rootmode=40000,user_id={},group_id={},max_read={}{}{}", device,
                                       ::getuid(), ::getgid(), kReadBytesMax, options.allow_other ? ",allow_other" : "",
                                       modes_restrict(options) ? ",default_permissions" : "");
  unsigned long flags = MS_NOSUID | MS_NODEV;
  if (options.read_only) flags |= MS_RDONLY;
  if (options.no_exec) flags |= MS_NOEXEC;
  if (::mount(options.store.c_str(), options.directory.c_str(), kType, flags, data.c_str()) == 0) return {};
  return sys_error(errno, fmt::format("mounting on {}", options.directory));
}

std::string fusermount_options(const MountOptions& options) {
  std::string out =
      fmt::format("fsname={},subtype=weft,nosuid,nodev,max_read={}", escape_option(options.store), kReadBytesMax);
  if (options.read_only) out += ",ro";
  if (options.no_exec) out += ",noexec";
  if (options.allow_other) out += ",allow_other";
  if (modes_restrict(options)) out += ",default_permissions";
  return out;
}

void force_unmount(const std::string& directory) {
  ::umount2(directory.c_str(), MNT_FORCE | MNT_DETACH);
}

void unmount_by_fusermount(const std::string& directory) {
  const char* const words[] = {"fusermount3", "-u", "-q", "-z", "--", directory.c_str(), nullptr};
  pid_t child = 0;
  if (::posix_spawnp(&child, words[0], nullptr, nullptr, const_cast<char**>(words), environ) == 0)
    ::waitpid(child, nullptr, 0);
}

bool on_overlayfs(const std::string& path) {
  struct statfs facts {};
  return ::statfs(path.c_str(), &facts) == 0 && facts.f_type == OVERLAYFS_SUPER_MAGIC;
}

Status set_read_ahead(const std::string& directory, unsigned kilobytes) {
  WEFT_TRY(const auto facts, stat_file(directory));
  const std::string path = fmt::format("/sys/class/bdi/{}:{}/read_ahead_kb", major(facts.st_dev), minor(facts.st_dev));
  WEFT_TRY(const Fd file, open_file(path, O_WRONLY | O_CLOEXEC));
  const std::string text = std::to_string(kilobytes);
  return append_exact(file.get(), std::as_bytes(std::span(text)), path);
}

}  // namespace weft
