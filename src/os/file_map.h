// A file as memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>

namespace weft {

// Maps a file once somebody asks for it. Any thread. A page that the disk does not give, or that lies behind the file's
// end, raises SIGBUS where a program looks at it; the kernel, given it by writev(2), answers EFAULT.
class FileMap {
 public:
  FileMap(int fd, std::uint64_t size) : fd_(fd), size_(size) {}  // `fd` stays the caller's
  ~FileMap();
  FileMap(const FileMap&) = delete;
  FileMap& operator=(const FileMap&) = delete;

  // Null where it cannot be mapped, or so many files are that the process might run out of mappings.
  const std::byte* bytes() const;

 private:
  const std::byte* map() const;

  const int fd_;
  const std::uint64_t size_;
  mutable std::once_flag once_;
  mutable const std::byte* bytes_ = nullptr;
};

// Puts mapped pages into the page table: who is given them next, needs no fault. False where one cannot be had (also
// before Linux 5.14).
bool make_present(const std::byte* bytes, std::uint64_t length);

}  // namespace weft
