#include "tracer_calls.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/syscall.h>

#include <algorithm>
#include <iterator>

namespace campaign {
namespace {

constexpr Call kCalls[] = {
#ifdef SYS_open  // those that arm64 lacks
    {SYS_open, "open", 0, -1},
    {SYS_creat, "creat", 0, -1},
    {SYS_stat, "stat", 0, -1},
    {SYS_lstat, "lstat", 0, -1},
    {SYS_rename, "rename", 0, -1},
    {SYS_link, "link", 0, -1},
    {SYS_unlink, "unlink", 0, -1},
    {SYS_mkdir, "mkdir", 0, -1},
    {SYS_rmdir, "rmdir", 0, -1},
    {SYS_access, "access", 0, -1},
#endif
    {SYS_openat, "openat", 1, -1},
    {SYS_openat2, "openat2", 1, -1},
    {SYS_newfstatat, "newfstatat", 1, -1},
    {SYS_statx, "statx", 1, -1},
    {SYS_fstat, "fstat", -1, 0},
    {SYS_statfs, "statfs", 0, -1},
    {SYS_fstatfs, "fstatfs", -1, 0},
    {SYS_faccessat2, "faccessat2", 1, -1},
    {SYS_getdents64, "getdents64", -1, 0},
    {SYS_read, "read", -1, 0},
    {SYS_readv, "readv", -1, 0},
    {SYS_pread64, "pread", -1, 0},
    {SYS_preadv, "preadv", -1, 0},
    {SYS_preadv2, "preadv2", -1, 0},
    {SYS_write, "write", -1, 0},
    {SYS_writev, "writev", -1, 0},
    {SYS_pwrite64, "pwrite", -1, 0},
    {SYS_pwritev, "pwritev", -1, 0},
    {SYS_pwritev2, "pwritev2", -1, 0},
    {SYS_sendfile, "sendfile", -1, 0},
    {SYS_copy_file_range, "copy_file_range", -1, 0},
    {SYS_fsync, "fsync", -1, 0},
    {SYS_fdatasync, "fdatasync", -1, 0},
    {SYS_sync_file_range, "sync_file_range", -1, 0},
    {SYS_syncfs, "syncfs", -1, 0},
    {SYS_ftruncate, "ftruncate", -1, 0},
    {SYS_truncate, "truncate", 0, -1},
    {SYS_fallocate, "fallocate", -1, 0},
    {SYS_fchmod, "fchmod", -1, 0},
    {SYS_fchown, "fchown", -1, 0},
    {SYS_lseek, "lseek", -1, 0},
    {SYS_flock, "flock", -1, 0},
    {SYS_fcntl, "fcntl", -1, 0},
    {SYS_ioctl, "ioctl", -1, 0},
    {SYS_mmap, "mmap", -1, 4},
    {SYS_renameat, "renameat", 1, -1},
    {SYS_renameat2, "renameat2", 1, -1},
    {SYS_linkat, "linkat", 1, -1},
    {SYS_symlinkat, "symlinkat", 0, -1},
    {SYS_unlinkat, "unlinkat", 1, -1},
    {SYS_mkdirat, "mkdirat", 1, -1},
    {SYS_utimensat, "utimensat", 1, -1},
};

constexpr std::uint64_t kFcntlThatFail[] = {F_SETLK,     F_SETLKW,        F_OFD_SETLK, F_OFD_SETLKW,
                                            F_OFD_GETLK, F_DUPFD_CLOEXEC, F_DUPFD,     F_SETLEASE};
constexpr std::uint64_t kIoctlsThatFail[] = {FICLONE, FICLONERANGE, FIDEDUPERANGE};

template <typename List>
bool contains(const List& list, std::uint64_t value) {
  return std::find(std::begin(list), std::end(list), value) != std::end(list);
}

}  // namespace

const Call* find_call(std::uint64_t number) {
  const Call* found =
      std::find_if(std::begin(kCalls), std::end(kCalls), [&](const Call& call) { return call.number == number; });
  return found == std::end(kCalls) ? nullptr : found;
}

bool can_fail(const Call& call, const Arguments& arguments) {
  if (call.number == SYS_fcntl && !contains(kFcntlThatFail, arguments[1])) return false;
  if (call.number == SYS_ioctl && !contains(kIoctlsThatFail, arguments[1])) return false;
  if (call.descriptor < 0) return true;
  auto descriptor = static_cast<int>(arguments[static_cast<std::size_t>(call.descriptor)]);
  return descriptor > 2;
}

}  // namespace campaign
