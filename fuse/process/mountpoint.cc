#include "fuse/process/mountpoint.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <climits>
#include <filesystem>
#include <optional>

#include "base/text.h"
#include "fuse/kernel/protocol.h"
#include "os/mounts.h"

namespace weft {
namespace {

constexpr char kType[] = "fuse.weft";

constexpr unsigned kMiscMajor = 10, kFuseMinor = 229;  // /dev/fuse, in every name space

constexpr std::chrono::seconds kStatusPatience{5};  // for the status of an existing mount

// The kernel asks the server for the facts of the file system at each call; access(2) may be answered from its caches.
bool server_is_gone(const std::string& path) {
  struct statvfs facts;
  return ::statvfs(path.c_str(), &facts) != 0 && errno == ENOTCONN;
}

// Returns why the mount at `path` counts as abandoned and may be cleared; empty if it does not.
Result<std::string> why_abandoned(const std::string& path) {
  const auto status = read_mount_status(path, kStatusPatience);
  if (!status.ok() && status.error().code == Errc::busy)
    return Error{Errc::busy, "in use by a weft mount that does not answer; `weft umount --lazy` takes it away"};
  if (!status.ok()) return std::string(server_is_gone(path) ? "whose server was gone" : "");
  const auto processes = mount_processes(*status);
  return std::string(processes.ok() && processes->supervisor_pid == 0 ? "whose supervisor was gone" : "");
}

// Clears an abandoned mount, and returns a message about it. If its server still runs, processes with open files go on.
Result<std::string> clear_abandoned(const std::string& path) {
  const auto mounts = weft_mounts();
  const auto mount = mounts.ok() ? top_mount(*mounts, path) : std::nullopt;
  if (!mount) return std::string();
  WEFT_TRY(const std::string why, why_abandoned(path));
  if (why.empty())
    return Error{Errc::busy, fmt::format("the store {} is mounted here already; unmount it first: weft umount {}",
                                         mount->store, path)};
  if (::umount2(path.c_str(), MNT_DETACH) != 0) unmount_by_fusermount(path);
  const auto after = weft_mounts();
  const auto left = after.ok() ? top_mount(*after, path) : std::nullopt;
  if (left && left->device == mount->device)
    return Error{Errc::busy, fmt::format("a mount {}, which cannot be unmounted", why)};
  return fmt::format("{}: cleared a mount {}", path, why);
}

Error problem(const std::string& directory, const Error& error) {
  return {error.code, fmt::format("mount point {}: {}", directory, error.message)};
}

// Returns what is wrong with a descriptor that was passed; "" if it can be served.
std::string descriptor_problem(int number) {
  const int flags = ::fcntl(number, F_GETFL);
  if (flags < 0) return fmt::format("descriptor {} is not open; the program that mounted has to pass it on", number);
  const auto facts = stat_fd(number, "");
  if (!facts.ok() || !S_ISCHR(facts->st_mode) || facts->st_rdev != makedev(kMiscMajor, kFuseMinor))
    return fmt::format("descriptor {} is not of /dev/fuse", number);
  if ((flags & O_ACCMODE) != O_RDWR) return fmt::format("descriptor {} is not open for reading and writing", number);
  return "";
}

// Returns the name of an entry of this directory; "" if it is empty or cannot be listed.
std::string name_in(const std::string& directory) {
  std::error_code error;
  const std::filesystem::directory_iterator first(directory, error);
  return error || first == std::filesystem::directory_iterator() ? "" : first->path().filename().string();
}

// Escapes commas, which would end libfuse's option, and backslashes.
std::string escape_option(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == ',' || c == '\\') out.push_back('\\');
    out.push_back(c);
  }
  return out;
}

}  // namespace

Result<Mountpoint> usable_mountpoint(const std::string& directory, bool non_empty) {
  const auto path = mount_point_path(directory);
  if (!path.ok() && path.error().code == Errc::not_found)
    return problem(directory, {Errc::not_found, "does not exist; create it first: mkdir -p " + directory});
  if (!path.ok()) return problem(directory, path.error());
  const auto cleared = clear_abandoned(*path);
  if (!cleared.ok()) return problem(directory, cleared.error());
  WEFT_TRY(const auto facts, stat_file(*path));
  if (!S_ISDIR(facts.st_mode))
    return problem(directory, {Errc::not_dir, "not a directory; name an empty directory to mount on"});
  const std::string name = non_empty ? "" : name_in(*path);
  if (!name.empty())
    return problem(directory, {Errc::exists, fmt::format("not empty: a mount would hide {}; name an empty directory, "
                                                         "or mount with -o nonempty",
                                                         name)});
  return Mountpoint{*path, *cleared};
}

// The new number is none of the standard streams, which are replaced in the background.
Result<Fd> take_descriptor(const std::string& mount_point) {
  const auto number = parse_u64(mount_point.substr(mount_point.rfind('/') + 1));
  if (!number || *number > INT_MAX || mount_point != fmt::format("/dev/fd/{}", *number))
    return problem(mount_point, {Errc::invalid, "expected /dev/fd/N, where N is the number of an open descriptor"});
  const int given = static_cast<int>(*number);
  const std::string wrong = descriptor_problem(given);
  if (!wrong.empty()) return problem(mount_point, {Errc::invalid, wrong});
  Fd device(::fcntl(given, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  if (!device.valid()) return problem(mount_point, sys_error(errno, "taking over the descriptor"));
  if (given > STDERR_FILENO) ::close(given);
  return device;
}

Result<Fd> open_fuse_device() {
  return open_file("/dev/fuse", O_RDWR | O_CLOEXEC);
}

Status mount_device(int device, const MountOptions& options) {
  const std::string data = fmt::format("fd={},rootmode=40000,user_id={},group_id={},max_read={}{}{}", device,
                                       ::getuid(), ::getgid(), kReadBytesMax, options.allow_other ? ",allow_other" : "",
                                       options.kernel_checks_modes() ? ",default_permissions" : "");
  // As mount(8), without SELinux in the kernel its options have no effect.
  const bool labels = !options.security.empty() && stat_file("/sys/fs/selinux/enforce").ok();
  const std::string all = labels ? data + "," + options.security : data;
  // The super block is read-only unless the mount announces. On a writable one, each passthrough read invalidates the
  // cached access time, and the next fstat(2) asks the server for all attributes.
  unsigned long flags = MS_NOSUID | MS_NODEV | (options.announce ? 0 : MS_RDONLY);
  if (options.no_exec) flags |= MS_NOEXEC;
  if (::mount(options.store.c_str(), options.directory.c_str(), kType, flags, all.c_str()) == 0) return {};
  return sys_error(errno, fmt::format("mounting on {}", options.directory));
}

std::string fusermount_options(const MountOptions& options) {
  std::string out = fmt::format("fsname={},subtype=weft,{},nosuid,nodev,max_read={}", escape_option(options.store),
                                options.announce ? "rw" : "ro", kReadBytesMax);
  if (options.no_exec) out += ",noexec";
  if (options.allow_other) out += ",allow_other";
  if (options.kernel_checks_modes()) out += ",default_permissions";
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

}  // namespace weft
