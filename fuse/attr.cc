#include "attr.h"

namespace weft {
namespace {

constexpr double kLastingSeconds = 86400;
// Of names that may come or go, and of attributes that change and are not told of: a change is to show within 100 ms;
// until then who reads many files of a version is not asked for its name each time, and a listing's attributes answer
// the stat(2) calls that follow it. Names are not kept until they are told of: to take one back the kernel takes its
// directory's lock, waits there for lookups, and never lets a server go that is killed meanwhile. What a link says is
// asked for each time, so a flip is atomic all the same.
constexpr double kChangingSeconds = 0.05;
constexpr std::uint64_t kNanoseconds = 1'000'000'000;

timespec to_timespec(std::uint64_t time_ns) {
  timespec time{};
  time.tv_sec = static_cast<time_t>(time_ns / kNanoseconds);
  time.tv_nsec = static_cast<long>(time_ns % kNanoseconds);
  return time;
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
  out.st_blksize = 4096;
  out.st_mtim = to_timespec(attr.mtime_ns);
  out.st_ctim = out.st_mtim;
  out.st_atim = out.st_mtim;
  return out;
}

double attr_timeout_s(const Attr& attr, bool told) {
  if (attr.lasting_attr || (attr.told && told)) return kLastingSeconds;
  return kChangingSeconds;
}

fuse_entry_param to_entry(const Attr& attr, const MountOptions& options, bool told) {
  fuse_entry_param entry{};
  entry.ino = attr.ino;
  entry.attr = to_stat(attr, options);
  entry.attr_timeout = attr_timeout_s(attr, told);
  entry.entry_timeout = attr.lasting_name ? kLastingSeconds : kChangingSeconds;
  return entry;
}

fuse_entry_param absent_entry() {
  fuse_entry_param entry{};
  entry.entry_timeout = kLastingSeconds;
  return entry;
}

}  // namespace weft
