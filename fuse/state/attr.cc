#include "fuse/state/attr.h"

namespace weft {
namespace {

constexpr double kLastingSeconds = 86400;
// Of directories that may come or go, models and versions, and of attributes that change and are not told of: a change
// is to show within 100 ms; until then who reads many files of a version is not asked for its name each time, and a
// listing's attributes answer the stat(2) calls that follow it. Other names that change are asked for each time: a link
// flips, and a file that is made from what is known shows it, at once. No name is kept until it is told of: to take one
// back the kernel takes its directory's lock, waits there for lookups, and never lets a server go that is killed
// meanwhile.
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
  if (attr.lasting_name) return kLastingSeconds;
  return attr.type == FileType::directory ? kChangingSeconds : 0;
}

}  // namespace

mode_t mode_of(FileType type, const MountOptions& options) {
  switch (type) {
    case FileType::regular:
      return S_IFREG | (0444U & ~options.umask);
    case FileType::directory:
      return S_IFDIR | (0555U & ~options.umask);
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
  return out;
}

double attr_timeout_s(const Attr& attr, bool told) {
  if (attr.lasting_attr || (attr.told && told)) return kLastingSeconds;
  return attr.lasting_name ? kChangingSeconds : name_timeout_s(attr);
}

fuse_entry_param to_entry(const Attr& attr, const MountOptions& options, bool told) {
  fuse_entry_param entry{};
  entry.ino = attr.ino;
  entry.attr = to_stat(attr, options);
  entry.attr_timeout = attr_timeout_s(attr, told);
  entry.entry_timeout = name_timeout_s(attr);
  return entry;
}

fuse_entry_param absent_entry() {
  fuse_entry_param entry{};
  entry.entry_timeout = kLastingSeconds;
  return entry;
}

}  // namespace weft
