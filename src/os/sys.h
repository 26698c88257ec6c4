// System calls as Results: each failure names the path and the operation. errno is translated only here.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/result.h"

namespace weft {

// Repeats a system call that a signal interrupts. `call` returns and sets errno as the system call does.
template <class Call>
auto retry(Call call) {
  for (;;) {
    auto result = call();
    if (result >= 0 || errno != EINTR) return result;
  }
}

// Owns a file descriptor.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  ~Fd() { reset(); }
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset();

 private:
  int fd_ = -1;
};

// Returns "WHAT: strerror" with the matching Errc and the errno.
Error sys_error(int error_number, std::string_view what);
Errc errc_of(int error_number);
// True if the kernel refused a system call (EACCES, EPERM). False for a refusal that weft's own code decides.
bool is_refused_by_kernel(const Error& error);
// Errors of checks that the kernel makes for other calls, with its errno.
Error other_file_system(std::string_view where);  // EXDEV
Error too_large(std::string_view where);          // EOVERFLOW
Error too_deep(std::string_view where);           // ELOOP
Error over_quota(std::string_view where);         // EDQUOT
Error too_many_open(std::string_view where);      // EMFILE
Error too_many_at_once(std::string_view where);   // EAGAIN

// These functions take paths as the user knows them and retry EINTR. Every descriptor is close-on-exec.
Result<Fd> open_file(const std::string& path, int flags, mode_t mode = 0644);
// Opens an entry of an open directory; follows links.
Result<Fd> open_file_at(int directory, const std::string& name, int flags, std::string_view where);
Result<Fd> duplicate(int fd, std::string_view where);  // a descriptor of the same open file
// Gives a directory to a group: the group may read it, and entries made below belong to the group.
Status give_to_group(int directory, gid_t group, std::string_view where);
Status set_mode(int fd, mode_t mode, std::string_view where);
Result<struct stat> stat_file(const std::string& path);  // follows links
Result<struct stat> stat_fd(int fd, std::string_view where);
// Checks that a file with a secret is a regular one of this user or of root, and that others cannot read or write it.
// `kind`: "key file". Errc::invalid, Errc::permission.
Status check_private_file(const struct stat& st, std::string_view kind, std::string_view where);
Status read_exact(int fd, std::uint64_t offset, std::span<std::byte> out, std::string_view where);  // short: Errc::io
Result<std::size_t> read_some(int fd, std::uint64_t offset, std::span<std::byte> out,
                              std::string_view where);  // fewer bytes only at the end
Result<std::size_t> read_next(int fd, std::span<std::byte> out,
                              std::string_view where);  // read(2) at the file position; 0 at the end
Status write_exact(int fd, std::uint64_t offset, std::span<const std::byte> bytes, std::string_view where);
Status append_exact(int fd, std::span<const std::byte> bytes, std::string_view where);  // write(2) at the file position
Status sync_file(int fd, std::string_view where);
Status sync_data(int fd, std::string_view where);  // with the metadata that reading needs, without times
Status sync_directory(const std::string& path);
Status make_directory(const std::string& path, mode_t mode = 0755);    // Errc::exists if the path is taken
Status make_directories(const std::string& path, mode_t mode = 0755);  // with parents; fine if it exists
Status rename_file(const std::string& from, const std::string& to);
Status rename_new(const std::string& from, const std::string& to);  // Errc::exists rather than replace
Status link_file(const std::string& from, const std::string& to);   // a second name; Errc::exists
Status remove_file(const std::string& path);                        // fine if it is absent
Status remove_empty_directory(const std::string& path);             // fine if it is absent, or not empty
Status remove_tree(const std::string& path);                        // does not follow links or cross mounts
Status remove_tree_at(int directory, const std::string& name, const std::string& where);  // as remove_tree
Result<std::vector<std::string>> list_directory(const std::string& path);  // names, sorted, without "." and ".."
Result<std::vector<std::string>> list_directory(Fd directory, const std::string& where);
Result<std::vector<std::byte>> read_file(const std::string& path, std::uint64_t bytes_max);
// Reads an open file whose size is in `st`. Errc::invalid if that is more than `bytes_max`.
Result<std::vector<std::byte>> read_whole(int fd, const struct stat& st, std::uint64_t bytes_max,
                                          std::string_view where);
// Reads a file of /proc or /sys to its end: the kernel tells its size only so. Errc::invalid if it has more than
// `bytes_max` bytes.
Result<std::string> read_kernel_file(const std::string& path, std::uint64_t bytes_max);
// Reserves disk blocks and keeps the size of the file.
Status allocate(int fd, std::uint64_t offset, std::uint64_t length, std::string_view where);
Status punch_hole(int fd, std::uint64_t offset, std::uint64_t length, std::string_view where);

enum class LockKind : std::uint8_t { shared, exclusive };
enum class LockWait : std::uint8_t { no, yes };
// Takes an open-file-description lock on the whole file. A shared lock needs a descriptor that is open for reading, an
// exclusive lock one that is open for writing. Errc::busy if the lock is held and `wait` is no. The lock ends when the
// last copy of the descriptor is closed.
Status lock_fd(int fd, LockKind kind, LockWait wait, std::string_view where);

// True if no program has the file open for writing or mapped shared and writable. True also if that is unknown: the
// file is another user's, or the file system has no leases.
bool not_written(int fd);

// While this object lives, its thread gets no signals but those of its own faults, such as SIGBUS. Threads inherit the
// mask of the thread that makes them: those that a library makes meanwhile run no handler of the program.
class SignalsBlocked {
 public:
  SignalsBlocked();
  ~SignalsBlocked();
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

uid_t own_user();         // the effective user of this process
std::string host_name();  // of this machine; "": unknown
std::uint64_t now_ns();   // CLOCK_REALTIME
std::uint64_t nanoseconds(const timespec& time);
std::string random_hex(std::size_t bytes);
// After this call a write past the limit on file sizes (RLIMIT_FSIZE) fails with EFBIG and does not end the process.
void survive_size_limit();
// Raises the limit on open files: root's to a million, another user's to the hard limit. Best effort.
void raise_file_limit();
// While this object lives, this process has the soft limit on open files that it had before raise_file_limit(), for a
// command that it starts. Open descriptors above the limit stay open.
class UsualFileLimit {
 public:
  UsualFileLimit();
  ~UsualFileLimit();
  UsualFileLimit(const UsualFileLimit&) = delete;
  UsualFileLimit& operator=(const UsualFileLimit&) = delete;

 private:
  std::uint64_t raised_ = 0;  // 0: the limit was not raised
};
std::uint64_t file_limit();  // the limit on open files of this process, now
// True if more than a third of the descriptors that this process may have are open. Judges by the number of the newest
// kept descriptor: the kernel assigns the lowest free number.
bool are_many_open(int last_kept);

// A read-only shared mapping of a whole file; empty files map to an empty span.
class MappedFile {
 public:
  static Result<MappedFile> map(int fd, std::uint64_t size, std::string_view where);
  MappedFile() = default;
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  MappedFile& operator=(MappedFile&& other) noexcept;
  std::span<const std::byte> bytes() const { return {static_cast<const std::byte*>(data_), size_}; }

 private:
  void* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace weft
