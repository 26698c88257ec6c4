// A disk that logs what happens to it: weft_campaign_recorder BACKING LOG MOUNTPOINT
// Serves two files. `disk` has the bytes of BACKING; a loop device stands on it. Each write, flush and discard of the
// disk is one record in LOG, in the order in which the disk saw it. Text that is written to `mark` is a record too, so
// that the log says what a program had answered by then. tests/campaign/disk_log.py reads the log.
#define FUSE_USE_VERSION 31
#include <fcntl.h>
#include <fuse.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string_view>

namespace {

constexpr std::string_view kDisk = "/disk";
constexpr std::string_view kMark = "/mark";
constexpr unsigned kWriteMax = 1U << 20U;

int backing = -1;
std::FILE* log_file = nullptr;

// One record: a letter, two numbers (little-endian, as this machine has them), and for writes and marks the bytes.
int append(char kind, std::uint64_t offset, std::uint64_t length, const char* data) {
  bool written = std::fputc(kind, log_file) != EOF && std::fwrite(&offset, sizeof offset, 1, log_file) == 1 &&
                 std::fwrite(&length, sizeof length, 1, log_file) == 1 &&
                 (data == nullptr || std::fwrite(data, 1, length, log_file) == length);
  return written ? 0 : -EIO;
}

int get_attributes(const char* path, struct stat* out, fuse_file_info* /*file*/) {
  std::memset(out, 0, sizeof *out);
  if (std::string_view(path) == "/") {
    out->st_mode = S_IFDIR | 0700;
    out->st_nlink = 2;
    return 0;
  }
  if (path != kDisk && path != kMark) return -ENOENT;
  out->st_mode = S_IFREG | 0600;
  out->st_nlink = 1;
  if (path == kDisk) {
    struct stat below {};
    if (fstat(backing, &below) != 0) return -errno;
    out->st_size = below.st_size;
  }
  return 0;
}

int open_file(const char* path, fuse_file_info* /*file*/) {
  return path == kDisk || path == kMark ? 0 : -ENOENT;
}

int truncate_file(const char* path, off_t /*size*/, fuse_file_info* /*file*/) {
  return path == kMark ? 0 : -EPERM;
}

int read_file(const char* path, char* buffer, size_t size, off_t offset, fuse_file_info* /*file*/) {
  if (path != kDisk) return 0;
  ssize_t got = pread(backing, buffer, size, offset);
  return got < 0 ? -errno : static_cast<int>(got);
}

int write_file(const char* path, const char* data, size_t size, off_t offset, fuse_file_info* /*file*/) {
  bool mark = path == kMark;
  if (!mark && pwrite(backing, data, size, offset) != static_cast<ssize_t>(size)) return -EIO;
  int status = append(mark ? 'M' : 'W', static_cast<std::uint64_t>(offset), size, data);
  return status != 0 ? status : static_cast<int>(size);
}

// The loop driver turns a flush of its device into this. FUA writes come as a write and a flush.
int sync_file(const char* path, int /*data_only*/, fuse_file_info* /*file*/) {
  return path == kDisk ? append('F', 0, 0, nullptr) : 0;
}

// Discards punch holes, and requests to write zeros arrive as either: both leave zeros.
int allocate(const char* path, int mode, off_t offset, off_t length, fuse_file_info* /*file*/) {
  if (path != kDisk) return -EOPNOTSUPP;
  if ((mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE)) == 0) return -EOPNOTSUPP;
  if (fallocate(backing, mode, offset, length) != 0) return -errno;
  return append('Z', static_cast<std::uint64_t>(offset), static_cast<std::uint64_t>(length), nullptr);
}

void* start(fuse_conn_info* connection, fuse_config* config) {
  connection->max_write = kWriteMax;
  config->direct_io = 1;  // no second page cache: what the loop device writes is here when its write returns
  return nullptr;
}

void finish(void* /*data*/) {
  std::fclose(log_file);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: weft_campaign_recorder BACKING LOG MOUNTPOINT\n");
    return 2;
  }
  backing = open(argv[1], O_RDWR | O_CLOEXEC);
  log_file = std::fopen(argv[2], "we");
  if (backing < 0 || log_file == nullptr) {
    std::perror("weft_campaign_recorder");
    return 1;
  }
  fuse_operations operations{};
  operations.getattr = get_attributes;
  operations.open = open_file;
  operations.truncate = truncate_file;
  operations.read = read_file;
  operations.write = write_file;
  operations.fsync = sync_file;
  operations.fallocate = allocate;
  operations.init = start;
  operations.destroy = finish;
  // One thread: the order of the log is the order of the disk.
  char name[] = "weft_campaign_recorder", foreground[] = "-f", one_thread[] = "-s";
  char* words[] = {name, foreground, one_thread, argv[3], nullptr};
  return fuse_main(4, words, &operations, nullptr);
}
