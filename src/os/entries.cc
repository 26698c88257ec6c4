#include "os/entries.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <linux/magic.h>
#include <sys/inotify.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <memory>

#include "os/file_ops.h"
#include "os/safe_path.h"

namespace weft {
namespace {

std::string by_descriptor(int fd) {
  return fmt::format("/proc/self/fd/{}", fd);
}

Status check_entry(long result, std::string_view where, std::string_view name) {
  if (result < 0) return sys_error(errno, where.empty() ? name : where);
  return {};
}

Status check_entry(long result, std::string_view what) {
  return check_entry(result, what, what);
}

Result<struct stat> stat_entry(int directory, const std::string& name, std::string_view where, int flags) {
  struct stat st {};
  WEFT_CHECK(check_entry(::fstatat(directory, name.c_str(), &st, flags), where, name));
  return st;
}

}  // namespace

std::uint64_t birth_at(int directory, const std::string& name) {
  struct statx facts {};
  const bool there = ::statx(directory, name.c_str(), AT_SYMLINK_NOFOLLOW, STATX_BTIME, &facts) == 0;
  if (!there || (facts.stx_mask & STATX_BTIME) == 0) return 0;
  return static_cast<std::uint64_t>(facts.stx_btime.tv_sec) * 1'000'000'000U + facts.stx_btime.tv_nsec;
}

Result<struct stat> stat_at(int directory, const std::string& name, std::string_view where) {
  return stat_entry(directory, name, where, AT_SYMLINK_NOFOLLOW);
}

Result<struct stat> stat_target_at(int directory, const std::string& name, std::string_view where) {
  return stat_entry(directory, name, where, 0);
}

bool has_entry(int directory, const std::string& name) {
  return ::faccessat(directory, name.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

Result<Fd> open_at(int directory, const std::string& name, int flags, mode_t mode) {
  Fd fd(::openat(directory, name.c_str(), flags | O_NOFOLLOW | O_CLOEXEC, mode));
  if (!fd.valid()) return sys_error(errno, name);
  return fd;
}

Result<Fd> open_directory_at(int directory, const std::string& name) {
  return open_at(directory, name, O_RDONLY | O_DIRECTORY);
}

Result<std::string> read_text_at(int directory, const std::string& name, std::uint64_t bytes_max,
                                 std::string_view where) {
  if (where.empty()) where = name;
  WEFT_TRY(const Fd file, open_at(directory, name, O_RDONLY | O_NONBLOCK));
  WEFT_TRY(const struct stat st, stat_fd(file.get(), where));
  if (!S_ISREG(st.st_mode) || static_cast<std::uint64_t>(st.st_size) > bytes_max)
    return Error{Errc::invalid,
                 fmt::format("{}: expected a file of at most {} bytes, got {}", where, bytes_max, st.st_size)};
  WEFT_TRY(const auto bytes, read_whole(file.get(), st, bytes_max, where));
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Status make_directory_at(int directory, const std::string& name, mode_t mode, std::string_view where) {
  return check_entry(::mkdirat(directory, name.c_str(), mode), where, name);
}

Status ensure_directory_at(int directory, const std::string& name, mode_t mode, std::string_view where) {
  const Status made = make_directory_at(directory, name, mode, where);
  return made.ok() || made.error().code == Errc::exists ? Status{} : made;
}

Status make_link_at(int directory, const std::string& name, const std::string& target) {
  return check_entry(::symlinkat(target.c_str(), directory, name.c_str()), name);
}

Status rename_at(int from, const std::string& name, int to, const std::string& new_name, unsigned flags,
                 std::string_view where) {
  return check_entry(::renameat2(from, name.c_str(), to, new_name.c_str(), flags), where, name);
}

Status link_at(int from, const std::string& name, int to, const std::string& new_name, std::string_view where) {
  return check_entry(::linkat(from, name.c_str(), to, new_name.c_str(), 0), where, name);
}

Status link_descriptor_at(int fd, int directory, const std::string& name, std::string_view where) {
  return check_entry(::linkat(AT_FDCWD, by_descriptor(fd).c_str(), directory, name.c_str(), AT_SYMLINK_FOLLOW), where,
                     name);
}

Status remove_at(int directory, const std::string& name, int flags, std::string_view where) {
  return check_entry(::unlinkat(directory, name.c_str(), flags), where, name);
}

Status read_directory(const Fd& directory, off_t from,
                      const std::function<bool(const std::string& name, off_t next)>& add) {
  WEFT_TRY(Fd own, duplicate(directory.get(), "a directory"));
  const std::unique_ptr<DIR, int (*)(DIR*)> list(::fdopendir(own.get()), ::closedir);
  if (!list) return sys_error(errno, "a directory");
  own.release();
  if (from != 0) ::seekdir(list.get(), from);
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(list.get());
    if (entry == nullptr) return errno == 0 ? Status{} : Status{sys_error(errno, "a directory")};
    if (!add(entry->d_name, entry->d_off)) return {};
  }
}

Result<Fd> watch_directory(int directory, std::string_view where) {
  Fd watch(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!watch.valid()) return sys_error(errno, "inotify (fs.inotify.max_user_instances)");
  WEFT_TRY(const std::string path, path_of_descriptor(directory, where));
  if (::inotify_add_watch(watch.get(), path.c_str(), IN_MODIFY | IN_MOVED_TO | IN_ONLYDIR) < 0)
    return sys_error(errno, fmt::format("{}: inotify (fs.inotify.max_user_watches)", where));
  return watch;
}

void forget_events(const Fd& watch) {
  alignas(inotify_event) std::array<char, 4096> events{};
  while (::read(watch.get(), events.data(), events.size()) > 0) {
  }
}

Result<Fd> make_nameless_file(int directory, mode_t mode) {
  return open_at(directory, ".", O_WRONLY | O_TMPFILE, mode);
}

Status put_file(int fd, int directory, const std::string& name) {
  const auto link_as = [&](const std::string& as) { return link_descriptor_at(fd, directory, as, name); };
  Status put = link_as(name);
  if (put.ok() || put.error().code != Errc::exists) return put;
  const std::string temporary = ".weft-" + random_hex(8);
  WEFT_CHECK(link_as(temporary));
  put = rename_at(directory, temporary, directory, name);
  if (!put.ok()) static_cast<void>(remove_at(directory, temporary));
  return put;
}

Result<std::string> read_link(int fd) {
  std::array<char, PATH_MAX> text{};
  const ssize_t length = ::readlinkat(fd, "", text.data(), text.size());
  WEFT_CHECK(check_entry(length, "a link"));
  return std::string(text.data(), static_cast<std::size_t>(length));
}

Status check_access(int fd, int mask) {
  return check_entry(::faccessat(AT_FDCWD, by_descriptor(fd).c_str(), mask, AT_EACCESS), "a file");
}

Status may_write_directory(const std::string& path) {
  return check_entry(::faccessat(AT_FDCWD, path.c_str(), W_OK | X_OK, AT_EACCESS), path);
}

Status change_mode(int fd, mode_t mode) {
  return check_entry(::chmod(by_descriptor(fd).c_str(), mode), "a file");
}

Status change_owner(int fd, uid_t uid, gid_t gid) {
  return check_entry(::fchownat(fd, "", uid, gid, AT_EMPTY_PATH), "a file");
}

void give_as(int fd, int directory) {
  struct stat st {};
  if (::geteuid() == 0 && ::fstat(directory, &st) == 0) static_cast<void>(::fchown(fd, st.st_uid, st.st_gid));
}

Status change_times(int fd, const timespec times[2]) {
  return check_entry(::utimensat(AT_FDCWD, by_descriptor(fd).c_str(), times, 0), "a file");
}

Status change_link_times(int directory, const std::string& name, const timespec times[2]) {
  return check_entry(::utimensat(directory, name.c_str(), times, AT_SYMLINK_NOFOLLOW), name);
}

Status resize_file(int fd, std::uint64_t bytes, std::string_view where) {
  return check_entry(::ftruncate(fd, static_cast<off_t>(bytes)), where);
}

Status change_blocks(int fd, int mode, off_t offset, off_t length) {
  return check_entry(::fallocate(fd, mode, offset, length), "a file");
}

Result<off_t> seek_file(int fd, off_t offset, int whence) {
  const off_t found = ::lseek(fd, offset, whence);
  WEFT_CHECK(check_entry(found, "a file"));
  return found;
}

Status copy_content(int from, int to, std::uint64_t bytes, std::string_view where) {
  if (clone_file(from, to)) return {};
  for (std::uint64_t done = 0; done < bytes;) {
    const ssize_t count = ::copy_file_range(from, nullptr, to, nullptr, bytes - done, 0);
    WEFT_CHECK(check_entry(count, where));
    if (count == 0) break;
    done += static_cast<std::uint64_t>(count);
  }
  return {};
}

bool is_on_overlay(int fd) {
  struct statfs facts {};
  return ::fstatfs(fd, &facts) == 0 && facts.f_type == OVERLAYFS_SUPER_MAGIC;
}

}  // namespace weft
