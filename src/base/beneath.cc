#include "base/beneath.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>

namespace weft {
namespace {

int open_beneath(int dir, const char* path, int flags, mode_t mode) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags | O_CLOEXEC);
  how.mode = (flags & O_CREAT) != 0 ? mode : 0;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
  for (;;) {
    const long fd = ::syscall(SYS_openat2, dir, path, &how, sizeof how);
    if (fd >= 0 || errno != EINTR) return static_cast<int>(fd);
  }
}

Error open_error(int error_number, const std::string& where) {
  if (error_number == ELOOP) return {Errc::invalid, fmt::format("{}: expected no symbolic link in this path", where)};
  if (error_number == EXDEV) return {Errc::invalid, fmt::format("{}: the path leads out of its directory", where)};
  if (error_number == ENOSYS) return {Errc::unsupported, fmt::format("{}: openat2 needs Linux 5.6", where)};
  return sys_error(error_number, where);
}

Status check(int result, std::string_view what, const std::string& where) {
  if (result < 0) return sys_error(errno, fmt::format("{}: {}", where, what));
  return {};
}

}  // namespace

Inode inode_of(const struct stat& st) {
  return {st.st_dev, st.st_ino};
}

Result<Beneath> Beneath::open(const std::string& path) {
  WEFT_TRY(Fd fd, weft::open_file(path, O_RDONLY | O_DIRECTORY));
  return Beneath(std::move(fd), path);
}

Result<Fd> Beneath::open_at(const std::string& path, int flags, mode_t mode) const {
  const int fd = open_beneath(fd_.get(), path.c_str(), flags, mode);
  if (fd < 0) return open_error(errno, where(path));
  return Fd(fd);
}

Result<Beneath> Beneath::directory(const std::string& path) const {
  WEFT_TRY(Fd fd, open_at(path, O_RDONLY | O_DIRECTORY, 0));
  return Beneath(std::move(fd), where(path));
}

Result<Fd> Beneath::open_file(const std::string& path, int flags) const {
  // Truncation would come before the look at the kind of file.
  const int kept = flags & ~O_TRUNC;
  WEFT_TRY(Fd fd, open_at(path, kept | O_NONBLOCK | O_NOCTTY, 0));
  WEFT_TRY(const struct stat st, stat_fd(fd.get(), where(path)));
  if (!S_ISREG(st.st_mode)) return Error{Errc::invalid, fmt::format("{}: expected a regular file", where(path))};
  if ((flags & O_TRUNC) != 0) WEFT_CHECK(check(::ftruncate(fd.get(), 0), "truncate", where(path)));
  return fd;
}

Result<Fd> Beneath::create_file(const std::string& name, mode_t mode) const {
  return open_at(name, O_WRONLY | O_CREAT | O_EXCL, mode);
}

Status Beneath::make_directory(const std::string& name, mode_t mode) const {
  return check(::mkdirat(fd_.get(), name.c_str(), mode), "mkdir", where(name));
}

Result<struct stat> Beneath::stat(const std::string& name) const {
  struct stat st {};
  WEFT_CHECK(check(::fstatat(fd_.get(), name.c_str(), &st, AT_SYMLINK_NOFOLLOW), "stat", where(name)));
  return st;
}

Result<std::vector<std::string>> Beneath::list() const {
  Fd again(open_beneath(fd_.get(), ".", O_RDONLY | O_DIRECTORY, 0));  // has a position of its own
  if (!again.valid()) return open_error(errno, path_);
  std::unique_ptr<DIR, int (*)(DIR*)> dir(::fdopendir(again.get()), ::closedir);
  if (!dir) return sys_error(errno, path_);
  again.release();
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = ::readdir(dir.get())) {
    std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(std::move(name));
    errno = 0;
  }
  if (errno != 0) return sys_error(errno, path_);
  std::sort(names.begin(), names.end());
  return names;
}

Status Beneath::move_new(const std::string& name, const Beneath& to) const {
  return check(::renameat2(fd_.get(), name.c_str(), to.fd_.get(), name.c_str(), RENAME_NOREPLACE),
               fmt::format("rename from {}", where(name)), to.where(name));
}

Status Beneath::remove(const std::string& name, Inode inode) const {
  struct stat st {};
  if (::fstatat(fd_.get(), name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0)
    return errno == ENOENT ? Status{} : Status{sys_error(errno, where(name))};
  if (inode_of(st) != inode) return {};
  return check(::unlinkat(fd_.get(), name.c_str(), S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0), "unlink", where(name));
}

Status Beneath::sync() const {
  return sync_file(fd_.get(), path_);
}

Status Beneath::sync_file_system() const {
  return check(::syncfs(fd_.get()), "syncfs", path_);
}

}  // namespace weft
