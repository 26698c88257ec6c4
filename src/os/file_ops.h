// System calls about the storage of large files. Most are hints or shortcuts: if the file system does not support one,
// the caller goes on without it.
#pragma once

#include <sys/stat.h>
#include <sys/statvfs.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "os/safe_path.h"
#include "os/sys.h"
#include "weft/result.h"

namespace weft {

// Makes `to` share all blocks of `from`. False if it cannot: another file system, or one without reflinks.
bool clone_file(int from, int to);
// Makes `length` bytes at `to_offset` share the blocks at `from_offset`. All three are multiples of the block size.
Status clone_range(int from, std::uint64_t from_offset, std::uint64_t length, int to, std::uint64_t to_offset,
                   std::string_view where);
// Gives an open file a second name. False if it cannot: another file system, or another owner.
bool link_descriptor(int fd, const SafePath& to);
// A lease on a file that has no writer. After another program opens the file for writing, holds() is false. The kernel
// delays that program's open(2) for some seconds, or until the lease is dropped.
class ReadLease {
 public:
  // Returns nothing if a writer has the file open, or if that cannot be found out.
  static std::optional<ReadLease> take(int fd);
  // False if no lease on the file can be had, whether a writer has it open or not: the file system has no leases, or
  // another user's file needs CAP_LEASE.
  static bool can_take(int fd);
  bool holds() const;
  int fd() const { return fd_.get(); }  // open for reading

 private:
  explicit ReadLease(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
};
// Writes the file to the disk and drops its pages. True if no page stays in memory and the file is not on overlayfs, so
// that only a new writer can change the file: a page that stays may be the target of a direct read, or a registered
// buffer, which outlives its mapping and its descriptor. `lease`: shows whether a new writer came.
bool is_unheld(const ReadLease& lease, std::string_view where);
// Opens the same file again; 0: for reading.
Result<Fd> open_descriptor(int fd, int flags = 0);
// Gives a file the mode 0644 and, if this process is root, the owner and the group of `directory`.
Status give_to_owner(int fd, const SafePath& directory);
// Drops the clean pages of a file from the page cache.
void drop_pages(int fd);
// Starts writing dirty pages to disk without waiting for them, so that a later fsync is short.
void start_writeback(int fd, std::uint64_t offset, std::uint64_t length);
// Writes the dirty pages of a range to disk and waits for them. A sync of the file makes them durable.
void write_back(int fd, std::uint64_t offset, std::uint64_t length);
// Tells the kernel that the file will be read once, from front to back.
void advise_sequential(int fd);
// The space of the file system that holds a file or directory; nothing if the file system does not report it.
struct DiskSpace {
  std::uint64_t total = 0, available = 0;  // bytes; `available` to users other than root
  std::uint64_t inodes = 0;                // 0: as many as the bytes allow
};
std::optional<DiskSpace> disk_space(int fd);
// Facts of the file system that holds a file or directory.
Result<unsigned long> file_system_type(int fd, std::string_view where);  // as f_type of statfs(2)
Result<struct statvfs> file_system_facts(int fd, std::string_view where);
// Returns the disk space that caches leave free for publishes and gc.
std::uint64_t cache_reserve(const DiskSpace& disk);
// Returns the bytes of disk that the file takes.
std::uint64_t allocated_bytes(const struct stat& st);
// Returns the bytes of disk that this file shares with no other; nothing if the file system cannot tell.
std::optional<std::uint64_t> unshared_bytes(int fd);
// Returns the first `bytes_max` bytes without the last newline; "" if they cannot be read. It is for the kernel's
// files, which report no size.
std::string read_line(const Result<Fd>& fd, std::size_t bytes_max);
// The id of the machine's current boot; "" if the kernel does not report it.
const std::string& boot_id();
// Seconds since the boot, with those of a suspend. Nobody sets this clock. 0: unknown.
std::uint64_t uptime_s();
void touch_file(int fd);  // sets the modification time to now; best effort
// True if the file was placed or touched before `before_ns` and within the last minute. A publisher that died may have
// left it, and the registry may still commit that publish: its last request may be in flight.
bool is_young(const SafePath& path, std::uint64_t before_ns);

}  // namespace weft
