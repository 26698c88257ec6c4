#include "store/file_ops.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>

namespace weft {

bool clone_file(int from, int to) {
  return ::ioctl(to, FICLONE, from) == 0;
}

void start_writeback(int fd, std::uint64_t offset, std::uint64_t length) {
  static_cast<void>(
      ::sync_file_range(fd, static_cast<off64_t>(offset), static_cast<off64_t>(length), SYNC_FILE_RANGE_WRITE));
}

void advise_sequential(int fd) {
  static_cast<void>(::posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL));
}

void drop_cached(int fd) {
  static_cast<void>(::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED));
}

std::uint64_t allocated_bytes(const struct stat& st) {
  return static_cast<std::uint64_t>(st.st_blocks) * 512;
}

}  // namespace weft
