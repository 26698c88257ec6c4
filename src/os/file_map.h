// A file mapped into memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>

namespace weft {

// Maps a file on first use. Any thread. A page that the disk cannot read, or that lies past the end of the file, raises
// SIGBUS when a program reads it, and makes writev(2) fail with EFAULT.
class FileMap {
 public:
  FileMap(int fd, std::uint64_t size) : fd_(fd), size_(size) {}  // the caller owns `fd`
  ~FileMap();

  // Returns null if the file cannot be mapped, or if so many are that the process might run out of mappings.
  const std::byte* bytes() const;

 private:
  const std::byte* map() const;

  const int fd_;
  const std::uint64_t size_;
  mutable std::once_flag once_;
  mutable const std::byte* bytes_ = nullptr;
};

// Adds mapped pages to the page table, so that their next use needs no fault. Returns false if a page cannot be read
// (always before Linux 5.14).
bool make_present(const std::byte* bytes, std::uint64_t length);

}  // namespace weft
