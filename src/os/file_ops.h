// System calls about where the bytes of large files are. Most are hints or shortcuts: where the file system cannot, the
// caller goes on without.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "os/safe_path.h"
#include "os/sys.h"
#include "weft/result.h"

namespace weft {

// Makes `to` share all blocks of `from`. False: not here (another file system, no reflinks).
bool clone_file(int from, int to);
// Makes `length` bytes at `to_offset` share the blocks of those at `from_offset`; all multiples of the block size.
Status clone_range(int from, std::uint64_t from_offset, std::uint64_t length, int to, std::uint64_t to_offset,
                   std::string_view where);
// A file that is open gets a second name. False: not here (another file system, another owner).
bool link_descriptor(int fd, const SafePath& to);
// While it lives, nobody can have opened the file for writing, or mapped it so, without that it tells. Who tries to is
// kept waiting for it, by the kernel, for some seconds.
class ReadLease {
 public:
  // Nothing: somebody writes to it now, or it cannot be told.
  static std::optional<ReadLease> take(int fd);
  bool holds() const;
  int fd() const { return fd_.get(); }  // to read

 private:
  explicit ReadLease(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
};
// The same file, opened anew to read.
Result<Fd> open_descriptor(int fd);
// A file becomes that of the owner of a directory, with the mode of what is made there.
Status give_to_owner(int fd, const SafePath& directory);
// Lets the page cache forget the pages of a file that are not dirty.
void drop_pages(int fd);
// Starts writing dirty pages to disk without waiting for them, so that a later fsync is short.
void start_writeback(int fd, std::uint64_t offset, std::uint64_t length);
// Writes the dirty pages of a range to disk and waits for them. A sync of the file makes them durable.
void write_back(int fd, std::uint64_t offset, std::uint64_t length);
// The file will be read from front to back, once.
void advise_sequential(int fd);
// Of the file system that a file or directory lies on. Nothing where it does not tell.
struct DiskSpace {
  std::uint64_t total = 0, available = 0;  // bytes; available to users that are not root
};
std::optional<DiskSpace> disk_space(int fd);
// Bytes of disk that the file takes.
std::uint64_t allocated_bytes(const struct stat& st);
// Of those, what no other file shares. Nothing where the file system cannot tell.
std::optional<std::uint64_t> unshared_bytes(int fd);
// Its first `bytes_max` bytes without the last newline; "" if they cannot be read. Files of the kernel have no size.
std::string read_line(const Result<Fd>& fd, std::size_t bytes_max);
// The id of this boot of the machine; "" if the kernel does not tell.
const std::string& boot_id();
void touch_file(int fd);  // its modification time is now; best effort
// Placed or touched within the last minute, and before this time: what a publisher that died has left a registry may
// still take, its last request being on its way.
bool is_young(const SafePath& path, std::uint64_t before_ns);

}  // namespace weft
