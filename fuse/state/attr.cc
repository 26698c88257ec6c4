#include "fuse/state/attr.h"

namespace weft {
namespace {

constexpr double kLastingSeconds = 86400;
// A model or a version may come or go, and the change is to show within 100 ms. Until then a reader of many files of a
// version is not asked for the version's name again, and the attributes of a listing answer the stat(2) calls after it.
// Links may lead elsewhere, and a generated file may have other bytes, so the kernel asks for their names each time. No
// name is kept until a notification takes it back: the kernel would take the lock of its directory, wait there for
// lookups, and never let go of a server that is killed meanwhile.
constexpr double kChangingSeconds = 0.05;
constexpr std::uint64_t kNanoseconds = 1'000'000'000;
constexpr blksize_t kReadAtOnce = 4096;  // by who has no reason for more

timespec to_timespec(std::uint64_t time_ns) {
  timespec time{};
  time.tv_sec = static_cast<time_t>(time_ns / kNanoseconds);
  time.tv_nsec = static_cast<long>(time_ns % kNanoseconds);
  return time;
}

double name_timeout_s(const Attr& attr) {
  if (attr.owner) return 0;  // a draft: whoever may write to it may do so behind this mount
  if (attr.lasting_name) return kLastingSeconds;
  return attr.type == FileType::directory ? kChangingSeconds : 0;
}

// Where the kernel checks modes, it asks the server for the announcer's changes only if its user may write to the
// directory. Every user who may enter a directory may ask to change it, and each of them but the announcer gets EROFS.
mode_t mode_of_directory(const MountOptions& options) {
  const mode_t mode = 0555U & ~options.umask;
  return options.announce && options.modes_restrict() ? mode | ((mode & 0111U) << 1U) : mode;
}

}  // namespace

mode_t mode_of(FileType type, const MountOptions& options) {
  switch (type) {
    case FileType::regular:
      return S_IFREG | (0444U & ~options.umask);
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
  out.st_mode = mode_of(attr.type, options);
  out.st_nlink = attr.nlink;
  out.st_uid = options.uid;
  out.st_gid = options.gid;
  out.st_size = static_cast<off_t>(attr.size);
  out.st_blocks = static_cast<blkcnt_t>(attr.blocks);
  out.st_blksize = attr.large ? kReadBytesMax : kReadAtOnce;
  out.st_mtim = to_timespec(attr.mtime_ns);
  out.st_ctim = out.st_mtim;
  out.st_atim = out.st_mtim;
  if (!attr.owner) return out;
  out.st_mode = (out.st_mode & S_IFMT) | attr.owner->mode;
  out.st_uid = attr.owner->uid;
  out.st_gid = attr.owner->gid;
  out.st_atim = to_timespec(attr.owner->atime_ns);
  out.st_ctim = to_timespec(attr.owner->ctime_ns);
  return out;
}

double attr_timeout_s(const Attr& attr, const MountOptions& options) {
  if (attr.owner) return 0;
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
