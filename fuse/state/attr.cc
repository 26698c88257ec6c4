#include "fuse/state/attr.h"

namespace weft {
namespace {

constexpr double kLastingSeconds = 86400;
// A model or version may come or go, and the mount shows that within 100 ms. Until then, a reader of many files of a
// version causes no lookup of the version's name, and the attributes of a listing answer the stat(2) calls after it.
// Links may change their target, and generated files their bytes, so the kernel looks up their names each time. No name
// is cached until a notification: invalidating takes the lock of the directory and waits there for lookups, and a
// server killed meanwhile would never end.
constexpr double kChangingSeconds = 0.05;
constexpr std::uint64_t kNanoseconds = 1'000'000'000;
constexpr blksize_t kReadAtOnce = 4096;  // bytes; no reason for larger reads

timespec to_timespec(std::uint64_t time_ns) {
  timespec time{};
  time.tv_sec = static_cast<time_t>(time_ns / kNanoseconds);
  time.tv_nsec = static_cast<long>(time_ns % kNanoseconds);
  return time;
}

double name_timeout_s(const Attr& attr) {
  if (attr.lasting_name) return kLastingSeconds;
  return attr.type == FileType::directory ? kChangingSeconds : 0;
}

// Modes of a tree that its owner may change, because they leave the mount with every copy. The mount itself is
// read-only whatever they say.
constexpr mode_t kDirectoryMode = 0755;
constexpr mode_t kFileMode = 0644;

// If the kernel checks modes on a writable super block, it passes an open for writing on only if the user may write to
// the file. So each user who may read the file may also write to it, and gets EROFS as on any read-only file system.
mode_t mode_of_file(const Attr& attr, const MountOptions& options) {
  const mode_t mode = (kFileMode | attr.execute) & ~options.umask;
  return options.announce && options.kernel_checks_modes() ? mode | ((mode & 0444U) >> 1U) : mode;
}

// If the kernel checks modes, it passes the announcer's changes on only if the announcer's user may write to the
// directory. So each user who may enter a directory may also write to it; all but the announcer then get EROFS.
mode_t mode_of_directory(const MountOptions& options) {
  const mode_t mode = kDirectoryMode & ~options.umask;
  return options.announce && options.kernel_checks_modes() ? mode | ((mode & 0111U) << 1U) : mode;
}

}  // namespace

mode_t mode_of(const Attr& attr, const MountOptions& options) {
  switch (attr.type) {
    case FileType::regular:
      return S_IFREG | mode_of_file(attr, options);
    case FileType::directory:
      return S_IFDIR | mode_of_directory(options);
    case FileType::link:
      return S_IFLNK | 0777U;
  }
  return 0;
}

struct stat to_stat(const Attr& attr, const MountOptions& options) {
  struct stat out {};
  out.st_ino = attr.ino;
  out.st_mode = mode_of(attr, options);
  out.st_nlink = attr.nlink;
  out.st_uid = options.uid;
  out.st_gid = options.gid;
  out.st_size = static_cast<off_t>(attr.size);
  out.st_blocks = static_cast<blkcnt_t>(attr.blocks);
  out.st_blksize = attr.large ? kReadBytesMax : kReadAtOnce;
  out.st_mtim = to_timespec(attr.mtime_ns);
  out.st_ctim = out.st_mtim;
  out.st_atim = out.st_mtim;
  return out;
}

double attr_timeout_s(const Attr& attr, const MountOptions& options) {
  if (attr.lasting_attr) return kLastingSeconds;
  if (attr.counted) return options.attr_timeout_s;
  return attr.lasting_name ? kChangingSeconds : name_timeout_s(attr);
}

fuse_entry_param to_entry(const Attr& attr, const MountOptions& options) {
  fuse_entry_param entry{};
  entry.ino = attr.ino;
  entry.attr = to_stat(attr, options);
  entry.attr_timeout = attr_timeout_s(attr, options);
  entry.entry_timeout = name_timeout_s(attr);
  return entry;
}

fuse_entry_param absent_entry() {
  fuse_entry_param entry{};
  entry.entry_timeout = kLastingSeconds;
  return entry;
}

}  // namespace weft
