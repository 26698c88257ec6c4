#include "os/beneath.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>

#include "os/entries.h"
#include "os/open_beneath.h"

namespace weft {
namespace {

constexpr int kAttempts = 16;

std::atomic<bool> trusts_all{false};

Status check_beneath(int result, std::string_view what, const std::string& where) {
  if (result < 0) return sys_error(errno, fmt::format("{}: {}", where, what));
  return {};
}

}  // namespace

Inode inode_of(const struct stat& st) {
  return {st.st_dev, st.st_ino};
}

void trust_all_owners() {
  trusts_all = true;
}

bool trusts_all_owners() {
  return trusts_all;
}

Result<Beneath> Beneath::open(const std::string& path) {
  WEFT_TRY(Fd fd, weft::open_file(path, O_RDONLY | O_DIRECTORY));
  return Beneath(std::move(fd), path, std::nullopt);
}

Result<Beneath> Beneath::open_owned(const std::string& path) {
  WEFT_TRY(Fd fd, weft::open_file(path, O_RDONLY | O_DIRECTORY));
  WEFT_TRY(const struct stat st, stat_fd(fd.get(), path));
  return Beneath(std::move(fd), path, st.st_uid);
}

// Gives a new file to the owner, with the directory's current group. Does nothing unless this process is root.
Status Beneath::give(int fd, const std::string& path) const {
  if (!owner_ || *owner_ == 0 || ::geteuid() != 0) return {};
  WEFT_TRY(const struct stat st, stat_fd(fd_.get(), path_));
  return check_beneath(::fchown(fd, *owner_, st.st_gid), "chown", where(path));
}

// With an owner rule the error is damage, as readers of a store see it; without one it is only a wrong argument.
Error Beneath::refused(const std::string& path, std::string_view why) const {
  return {owner_ ? Errc::corrupt : Errc::invalid, fmt::format("{}: {}", where(path), why)};
}

Error Beneath::open_error(int error_number, const std::string& path) const {
  if (error_number == ELOOP) return refused(path, "expected no symbolic link in this path");
  if (error_number == EXDEV) return refused(path, "the path leads out of its directory");
  if (error_number == ENXIO) return refused(path, "expected a regular file");  // a FIFO without a reader, a socket
  if (error_number == ENOSYS) return {Errc::unsupported, fmt::format("{}: openat2 needs Linux 5.6", where(path))};
  return sys_error(error_number, where(path));
}

Status Beneath::check_owner(const struct stat& st, const std::string& path) const {
  if (!owner_ || st.st_uid == *owner_ || trusts_all) return {};
  return refused(
      path, fmt::format("expected a file of user {}, as its directory is, got one of user {}", *owner_, st.st_uid));
}

Result<Fd> Beneath::open_at(const std::string& path, int flags, mode_t mode) const {
  auto fd = open_beneath(fd_.get(), path, flags, mode, Resolve::no_links);
  if (!fd.ok()) return open_error(fd.error().os_error, path);
  return fd;
}

Result<Fd> Beneath::open_directory(const std::string& path) const {
  return open_at(path, O_RDONLY | O_DIRECTORY, 0);
}

Result<Beneath> Beneath::directory(const std::string& path) const {
  WEFT_TRY(Fd fd, open_directory(path));
  return Beneath(std::move(fd), where(path), owner_);
}

// Truncates last: O_TRUNC would empty the file before its kind and its owner are checked.
Result<OpenedFile> Beneath::open_there(const std::string& path, int flags) const {
  const int kept = flags & ~(O_TRUNC | O_CREAT);
  OpenedFile opened;
  WEFT_TRY(opened.fd, open_at(path, kept | O_NONBLOCK | O_NOCTTY, 0));
  WEFT_TRY(opened.st, stat_fd(opened.fd.get(), where(path)));
  if (!S_ISREG(opened.st.st_mode)) return refused(path, "expected a regular file");
  WEFT_CHECK(check_owner(opened.st, path));
  if ((flags & O_TRUNC) == 0) return opened;
  WEFT_CHECK(check_beneath(::ftruncate(opened.fd.get(), 0), "truncate", where(path)));
  opened.st.st_size = 0;
  return opened;
}

Result<OpenedFile> Beneath::create(const std::string& path, int flags, mode_t mode) const {
  if (owner_ && !trusts_all && ::geteuid() != 0 && ::geteuid() != *owner_)
    return Error{Errc::permission,
                 fmt::format("{}: only user {}, who owns {}, and root make files there", where(path), *owner_, path_)};
  OpenedFile made;
  WEFT_TRY(made.fd, open_at(path, flags | O_CREAT | O_EXCL, mode));
  const Status given = give(made.fd.get(), path);
  auto st = given.ok() ? stat_fd(made.fd.get(), where(path)) : Result<struct stat>(given.error());
  if (!st.ok()) {  // the caller gets no descriptor and could not remove the file
    const auto at = leaf(path);
    if (at.ok()) static_cast<void>(::unlinkat(at->directory, at->name.c_str(), 0));
    return std::move(st).error();
  }
  made.st = *st;
  return made;
}

// Checks an existing file before it changes the file. A file that create() makes is this process's own.
Result<OpenedFile> Beneath::open_with_stat(const std::string& path, int flags, mode_t mode) const {
  if ((flags & O_CREAT) == 0) return open_there(path, flags);
  if ((flags & O_EXCL) != 0) return create(path, flags, mode);
  for (int attempt = 0;; ++attempt) {
    auto there = open_there(path, flags);
    if (there.ok() || there.error().code != Errc::not_found) return there;
    auto made = create(path, flags, mode);
    if (made.ok() || made.error().code != Errc::exists || attempt == kAttempts) return made;
  }
}

Result<Fd> Beneath::open_file(const std::string& path, int flags, mode_t mode) const {
  WEFT_TRY(OpenedFile opened, open_with_stat(path, flags, mode));
  return std::move(opened.fd);
}

Result<OpenedFile> Beneath::find_socket(const std::string& path) const {
  OpenedFile found;
  WEFT_TRY(found.fd, open_at(path, O_PATH, 0));
  WEFT_TRY(found.st, stat_fd(found.fd.get(), where(path)));
  if (!S_ISSOCK(found.st.st_mode)) return refused(path, "expected a socket");
  return found;
}

Result<Fd> Beneath::open_socket(const std::string& path) const {
  WEFT_TRY(OpenedFile found, find_socket(path));
  WEFT_CHECK(check_owner(found.st, path));
  return std::move(found.fd);
}

// fchown(2) refuses an O_PATH descriptor, so the owner is changed with AT_EMPTY_PATH.
Result<Fd> Beneath::open_made_socket(const std::string& path) const {
  WEFT_TRY(OpenedFile found, find_socket(path));
  if (found.st.st_uid != ::geteuid() || found.st.st_nlink != 1) return refused(path, "expected a socket just made");
  if (!owner_ || *owner_ == 0 || ::geteuid() != 0) return std::move(found.fd);
  WEFT_TRY(const struct stat st, stat_fd(fd_.get(), path_));
  WEFT_CHECK(check_beneath(::fchownat(found.fd.get(), "", *owner_, st.st_gid, AT_EMPTY_PATH), "chown", where(path)));
  return std::move(found.fd);
}

Result<std::vector<std::byte>> Beneath::read_file(const std::string& path, std::uint64_t bytes_max) const {
  WEFT_TRY(const OpenedFile opened, open_with_stat(path, O_RDONLY));
  return read_whole(opened.fd.get(), opened.st, bytes_max, where(path));
}

Result<Beneath::Leaf> Beneath::leaf(const std::string& path) const {
  const std::size_t slash = path.rfind('/');
  Leaf leaf;
  leaf.directory = fd_.get();
  leaf.name = slash == std::string::npos ? path : path.substr(slash + 1);
  if (slash == std::string::npos) return leaf;
  WEFT_TRY(leaf.held, open_at(path.substr(0, slash), O_PATH | O_DIRECTORY, 0));
  leaf.directory = leaf.held.get();
  return leaf;
}

Status Beneath::make_directory(const std::string& path, mode_t mode) const {
  WEFT_TRY(const Leaf at, leaf(path));
  WEFT_CHECK(make_directory_at(at.directory, at.name, mode, where(path) + ": mkdir"));
  if (!owner_ || *owner_ == ::geteuid()) return {};
  WEFT_TRY(const Fd made, open_at(path, O_RDONLY | O_DIRECTORY, 0));
  return give(made.get(), path);
}

Result<struct stat> Beneath::stat(const std::string& path) const {
  WEFT_TRY(const Leaf at, leaf(path));
  return stat_at(at.directory, at.name, where(path));
}

// Opens the directory again, because a listing needs its own read position.
Result<std::vector<std::string>> Beneath::list(const std::string& path) const {
  WEFT_TRY(Fd directory, open_at(path, O_RDONLY | O_DIRECTORY, 0));
  return list_directory(std::move(directory), where(path));
}

Status Beneath::rename(const std::string& from, const Beneath& other, const std::string& to) const {
  WEFT_TRY(const Leaf source, leaf(from));
  WEFT_TRY(const Leaf target, other.leaf(to));
  return rename_at(source.directory, source.name, target.directory, target.name, 0,
                   fmt::format("{}: rename from {}", other.where(to), where(from)));
}

Status Beneath::rename_new(const std::string& from, const Beneath& other, const std::string& to) const {
  WEFT_TRY(const Leaf source, leaf(from));
  WEFT_TRY(const Leaf target, other.leaf(to));
  return rename_at(source.directory, source.name, target.directory, target.name, RENAME_NOREPLACE,
                   fmt::format("{}: rename from {}", other.where(to), where(from)));
}

Status Beneath::link(const std::string& from, const Beneath& other, const std::string& to) const {
  WEFT_TRY(const Leaf source, leaf(from));
  WEFT_TRY(const Leaf target, other.leaf(to));
  return link_at(source.directory, source.name, target.directory, target.name,
                 fmt::format("{}: link from {}", other.where(to), where(from)));
}

Status Beneath::unlink(const std::string& path) const {
  const auto at = leaf(path);
  if (!at.ok()) return at.error().code == Errc::not_found ? Status{} : Status{at.error()};
  if (::unlinkat(at->directory, at->name.c_str(), 0) != 0 && errno != ENOENT) return sys_error(errno, where(path));
  return {};
}

Status Beneath::remove_tree(const std::string& path) const {
  const auto at = leaf(path);
  if (!at.ok()) return at.error().code == Errc::not_found ? Status{} : Status{at.error()};
  return remove_tree_at(at->directory, at->name, where(path));
}

Status Beneath::remove(const std::string& path, Inode inode) const {
  WEFT_TRY(const Leaf at, leaf(path));
  struct stat st {};
  if (::fstatat(at.directory, at.name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0)
    return errno == ENOENT ? Status{} : Status{sys_error(errno, where(path))};
  if (inode_of(st) != inode) return {};
  return check_beneath(::unlinkat(at.directory, at.name.c_str(), S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0), "unlink",
                       where(path));
}

Status Beneath::sync(const std::string& path) const {
  if (path == ".") return sync_file(fd_.get(), path_);
  WEFT_TRY(const Fd directory, open_at(path, O_RDONLY | O_DIRECTORY, 0));
  return sync_file(directory.get(), where(path));
}

Status Beneath::sync_file_system() const {
  return check_beneath(::syncfs(fd_.get()), "syncfs", path_);
}

}  // namespace weft
