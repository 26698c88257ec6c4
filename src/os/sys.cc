#include "os/sys.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <limits>
#include <memory>

#include <fmt/core.h>

namespace weft {
namespace {

// The most bytes of one read or write system call; Linux itself stops a little below 2 GiB.
constexpr std::size_t kCallMax = 1U << 30U;
constexpr rlim_t kFilesMax = 1U << 20U;  // the kernel's default for fs.nr_open
rlim_t usual_file_limit = 0;  // before raise_file_limit(), which runs before threads start; 0: it did not run

void set_soft_file_limit(rlim_t files) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = std::min(files, limit.rlim_max);
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

Status check(int result, std::string_view what, std::string_view where) {
  if (result < 0) return sys_error(errno, fmt::format("{}: {}", where, what));
  return {};
}

Result<off_t> file_offset(std::uint64_t offset, std::string_view where) {
  if (offset > static_cast<std::uint64_t>(std::numeric_limits<off_t>::max()))
    return Error{Errc::invalid, fmt::format("{}: offset {} is past the end of any file", where, offset)};
  return static_cast<off_t>(offset);
}

}  // namespace

void Fd::reset() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

Errc errc_of(int error_number) {
  switch (error_number) {
    case ENOENT:
      return Errc::not_found;
    case EEXIST:
    case ENOTEMPTY:
      return Errc::exists;
    case EACCES:
    case EPERM:
      return Errc::permission;
    case ENOSPC:
    case EDQUOT:
      return Errc::no_space;
    case EAGAIN:
    case EBUSY:
    case ETXTBSY:
      return Errc::busy;
    case EROFS:
      return Errc::read_only;
    case EISDIR:
      return Errc::is_dir;
    case ENOTDIR:
      return Errc::not_dir;
    case EINVAL:
    case ENAMETOOLONG:
    case ELOOP:
      return Errc::invalid;
    case ENOSYS:
    case EOPNOTSUPP:
      return Errc::unsupported;
    default:
      return Errc::io;
  }
}

Error sys_error(int error_number, std::string_view what) {
  char buffer[256];
  return Error{errc_of(error_number), fmt::format("{}: {}", what, strerror_r(error_number, buffer, sizeof buffer)),
               error_number};
}

bool is_refused_by_kernel(const Error& error) {
  return error.code == Errc::permission && error.os_error != 0;
}

Error other_file_system(std::string_view where) {
  return sys_error(EXDEV, where);
}

Error too_large(std::string_view where) {
  return sys_error(EOVERFLOW, where);
}

Error too_deep(std::string_view where) {
  return sys_error(ELOOP, where);
}

Error over_quota(std::string_view where) {
  return sys_error(EDQUOT, where);
}

Error too_many_open(std::string_view where) {
  return sys_error(EMFILE, where);
}

Error too_many_at_once(std::string_view where) {
  return sys_error(EAGAIN, where);
}

Result<Fd> open_file(const std::string& path, int flags, mode_t mode) {
  int fd = retry([&] { return ::open(path.c_str(), flags | O_CLOEXEC, mode); });
  if (fd < 0) return sys_error(errno, path);
  return Fd(fd);
}

Result<Fd> open_file_at(int directory, const std::string& name, int flags, std::string_view where) {
  const int fd = retry([&] { return ::openat(directory, name.c_str(), flags | O_CLOEXEC); });
  if (fd < 0) return sys_error(errno, where);
  return Fd(fd);
}

Result<Fd> duplicate(int fd, std::string_view where) {
  Fd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!copy.valid()) return sys_error(errno, where);
  return copy;
}

Status give_to_group(int directory, gid_t group, std::string_view where) {
  WEFT_CHECK(check(::fchown(directory, static_cast<uid_t>(-1), group), "chown", where));
  WEFT_TRY(const struct stat st, stat_fd(directory, where));
  return set_mode(directory, (st.st_mode & 07777U) | S_ISGID | S_IRGRP | S_IXGRP, where);
}

Status set_mode(int fd, mode_t mode, std::string_view where) {
  return check(::fchmod(fd, mode), "chmod", where);
}

Result<struct stat> stat_file(const std::string& path) {
  struct stat st {};
  if (::stat(path.c_str(), &st) != 0) return sys_error(errno, path);
  return st;
}

Result<struct stat> stat_fd(int fd, std::string_view where) {
  struct stat st {};
  WEFT_CHECK(check(::fstat(fd, &st), "stat", where));
  return st;
}

Result<std::size_t> read_some(int fd, std::uint64_t offset, std::span<std::byte> out, std::string_view where) {
  WEFT_TRY(off_t at, file_offset(offset, where));
  std::size_t done = 0;
  while (done < out.size()) {
    std::size_t want = std::min(out.size() - done, kCallMax);
    ssize_t got = retry([&] { return ::pread(fd, out.data() + done, want, at + static_cast<off_t>(done)); });
    if (got < 0) return sys_error(errno, fmt::format("{}: read of {} bytes at {}", where, want, offset + done));
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

Result<std::size_t> read_next(int fd, std::span<std::byte> out, std::string_view where) {
  const ssize_t got = retry([&] { return ::read(fd, out.data(), std::min(out.size(), kCallMax)); });
  if (got < 0) return sys_error(errno, fmt::format("{}: read of {} bytes", where, out.size()));
  return static_cast<std::size_t>(got);
}

Status check_private_file(const struct stat& st, std::string_view kind, std::string_view where) {
  if (!S_ISREG(st.st_mode)) return Error{Errc::invalid, fmt::format("{} {}: expected a regular file", kind, where)};
  if (st.st_uid != own_user() && st.st_uid != 0)
    return Error{Errc::permission,
                 fmt::format("{} {}: expected owner {} or root, got {}", kind, where, own_user(), st.st_uid)};
  if ((st.st_mode & 077U) == 0) return {};
  return Error{Errc::permission,
               fmt::format("{} {}: others can read or write it: expected mode 0600 or 0400, got {:04o}", kind, where,
                           st.st_mode & 07777U)};
}

Status read_exact(int fd, std::uint64_t offset, std::span<std::byte> out, std::string_view where) {
  WEFT_TRY(std::size_t got, read_some(fd, offset, out, where));
  if (got != out.size())
    return Error{Errc::io, fmt::format("{}: expected {} bytes at {}, got {}", where, out.size(), offset, got)};
  return {};
}

Status write_exact(int fd, std::uint64_t offset, std::span<const std::byte> bytes, std::string_view where) {
  WEFT_TRY(off_t at, file_offset(offset, where));
  std::size_t done = 0;
  while (done < bytes.size()) {
    std::size_t want = std::min(bytes.size() - done, kCallMax);
    ssize_t put = retry([&] { return ::pwrite(fd, bytes.data() + done, want, at + static_cast<off_t>(done)); });
    if (put < 0) return sys_error(errno, fmt::format("{}: write of {} bytes at {}", where, want, offset + done));
    done += static_cast<std::size_t>(put);
  }
  return {};
}

Status append_exact(int fd, std::span<const std::byte> bytes, std::string_view where) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    std::size_t want = std::min(bytes.size() - done, kCallMax);
    ssize_t put = retry([&] { return ::write(fd, bytes.data() + done, want); });
    if (put < 0) return sys_error(errno, fmt::format("{}: write of {} bytes", where, want));
    done += static_cast<std::size_t>(put);
  }
  return {};
}

Status sync_file(int fd, std::string_view where) {
  return check(retry([&] { return ::fsync(fd); }), "fsync", where);
}

Status sync_data(int fd, std::string_view where) {
  return check(retry([&] { return ::fdatasync(fd); }), "fdatasync", where);
}

Status sync_directory(const std::string& path) {
  WEFT_TRY(Fd dir, open_file(path, O_RDONLY | O_DIRECTORY));
  return sync_file(dir.get(), path);
}

Status make_directory(const std::string& path, mode_t mode) {
  return check(::mkdir(path.c_str(), mode), "mkdir", path);
}

Status make_directories(const std::string& path, mode_t mode) {
  for (std::size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    std::string prefix = path.substr(0, slash);
    if (!prefix.empty() && ::mkdir(prefix.c_str(), mode) != 0 && errno != EEXIST) return sys_error(errno, prefix);
    if (slash == std::string::npos) break;
  }
  WEFT_TRY(struct stat st, stat_file(path));
  if (!S_ISDIR(st.st_mode)) return Error{Errc::not_dir, fmt::format("{}: expected a directory", path)};
  return {};
}

Status rename_file(const std::string& from, const std::string& to) {
  return check(::rename(from.c_str(), to.c_str()), fmt::format("rename from {}", from), to);
}

Status rename_new(const std::string& from, const std::string& to) {
  int result = ::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE);
  return check(result, fmt::format("rename from {}", from), to);
}

Status link_file(const std::string& from, const std::string& to) {
  return check(::link(from.c_str(), to.c_str()), fmt::format("link from {}", from), to);
}

Status remove_file(const std::string& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return sys_error(errno, path);
  return {};
}

Status remove_empty_directory(const std::string& path) {
  if (::rmdir(path.c_str()) == 0 || errno == ENOENT || errno == ENOTEMPTY || errno == EEXIST) return {};
  return sys_error(errno, path);
}

Result<std::vector<std::string>> list_directory(const std::string& path) {
  WEFT_TRY(Fd directory, open_file(path, O_RDONLY | O_DIRECTORY));
  return list_directory(std::move(directory), path);
}

Result<std::vector<std::string>> list_directory(Fd directory, const std::string& where) {
  std::unique_ptr<DIR, int (*)(DIR*)> dir(::fdopendir(directory.get()), ::closedir);
  if (!dir) return sys_error(errno, where);
  directory.release();
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = ::readdir(dir.get())) {
    std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(std::move(name));
    errno = 0;
  }
  if (errno != 0) return sys_error(errno, where);
  std::sort(names.begin(), names.end());
  return names;
}

Result<std::vector<std::byte>> read_file(const std::string& path, std::uint64_t bytes_max) {
  WEFT_TRY(Fd fd, open_file(path, O_RDONLY));
  WEFT_TRY(const struct stat st, stat_fd(fd.get(), path));
  return read_whole(fd.get(), st, bytes_max, path);
}

Result<std::vector<std::byte>> read_whole(int fd, const struct stat& st, std::uint64_t bytes_max,
                                          std::string_view where) {
  auto size = static_cast<std::uint64_t>(st.st_size);
  if (size > bytes_max)
    return Error{Errc::invalid, fmt::format("{}: expected at most {} bytes, got {}", where, bytes_max, size)};
  std::vector<std::byte> bytes(size);
  WEFT_CHECK(read_exact(fd, 0, bytes, where));
  return bytes;
}

Result<std::string> read_kernel_file(const std::string& path, std::uint64_t bytes_max) {
  WEFT_TRY(const Fd file, open_file(path, O_RDONLY));
  std::string text;
  std::array<std::byte, 16 << 10> part{};
  for (;;) {
    WEFT_TRY(const std::size_t got, read_next(file.get(), part, path));
    if (got == 0) return text;
    text.append(reinterpret_cast<const char*>(part.data()), got);
    if (text.size() > bytes_max)
      return Error{Errc::invalid, fmt::format("{}: expected at most {} bytes", path, bytes_max)};
  }
}

Status allocate(int fd, std::uint64_t offset, std::uint64_t length, std::string_view where) {
  return check(retry([&] {
                 return ::fallocate(fd, FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset), static_cast<off_t>(length));
               }),
               "allocate", where);
}

Status punch_hole(int fd, std::uint64_t offset, std::uint64_t length, std::string_view where) {
  int result = ::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                           static_cast<off_t>(length));
  return check(result, "punch hole", where);
}

namespace {

struct flock whole_file(short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  return lock;
}

}  // namespace

Status lock_fd(int fd, LockKind kind, LockWait wait, std::string_view where) {
  const struct flock lock = whole_file(kind == LockKind::shared ? F_RDLCK : F_WRLCK);
  const int command = wait == LockWait::no ? F_OFD_SETLK : F_OFD_SETLKW;
  if (retry([&] { return ::fcntl(fd, command, &lock); }) == 0) return {};
  if (errno == EAGAIN) return Error{Errc::busy, fmt::format("{}: another process holds its lock", where)};
  return sys_error(errno, fmt::format("{}: lock", where));
}

bool not_written(int fd) {
  if (::fcntl(fd, F_SETLEASE, F_RDLCK) != 0) return errno != EAGAIN;
  ::fcntl(fd, F_SETLEASE, F_UNLCK);
  return true;
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

uid_t own_user() {
  return ::geteuid();
}

std::uint64_t now_ns() {
  timespec ts{};
  ::clock_gettime(CLOCK_REALTIME, &ts);
  return nanoseconds(ts);
}

std::uint64_t nanoseconds(const timespec& time) {
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(time.tv_nsec);
}

std::string random_hex(std::size_t bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes; ++i) {
    unsigned char value = 0;
    while (::getrandom(&value, 1, 0) != 1) {
    }
    text += fmt::format("{:02x}", value);
  }
  return text;
}

void survive_size_limit() {
  struct sigaction action {};
  action.sa_handler = SIG_IGN;
  ::sigaction(SIGXFSZ, &action, nullptr);
}

void raise_file_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  if (usual_file_limit == 0) usual_file_limit = limit.rlim_cur;
  const rlim_t most = std::max(limit.rlim_max, kFilesMax);
  const rlimit raised{most, most};
  if (::setrlimit(RLIMIT_NOFILE, &raised) == 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

UsualFileLimit::UsualFileLimit() {
  if (usual_file_limit == 0) return;
  raised_ = file_limit();
  set_soft_file_limit(usual_file_limit);
}

UsualFileLimit::~UsualFileLimit() {
  if (raised_ != 0) set_soft_file_limit(raised_);
}

std::uint64_t file_limit() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 0;
}

bool are_many_open(int last_kept) {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 && static_cast<rlim_t>(last_kept) > limit.rlim_cur / 3;
}

SignalsBlocked::SignalsBlocked() {
  sigset_t set;
  ::sigfillset(&set);
  // The kernel ends a process whose thread causes one of these while it is blocked.
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT}) ::sigdelset(&set, fault);
  ::pthread_sigmask(SIG_BLOCK, &set, &before_);
}

SignalsBlocked::~SignalsBlocked() {
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

Result<MappedFile> MappedFile::map(int fd, std::uint64_t size, std::string_view where) {
  MappedFile file;
  if (size == 0) return file;
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
  if (data == MAP_FAILED) return sys_error(errno, fmt::format("{}: mmap of {} bytes", where, size));
  file.data_ = data;
  file.size_ = size;
  return file;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  if (this != &other) {
    if (data_ != nullptr) ::munmap(data_, size_);
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
  }
  return *this;
}

}  // namespace weft
