// Memory that a peer may read for a while (os/window_memory.cc): immutable bytes, mapped read-only.
//
// Any thread. A read in progress when its window closes may still be answered from these addresses. So memory whose
// reader has not reported its end is withdrawn before it is destroyed: its pages and its file are released, and its
// addresses stay reserved. A late read then sends zeros and not other data of this process. It must send something: if
// libfabric's net (1.17) cannot read its source, it skips these bytes and continues, and the peer takes every later
// message for the rest of this one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "weft/result.h"

namespace weft {

class WindowMemory {
 public:
  // Maps [offset, offset + length) of a file, at least one byte. The file must not shrink meanwhile. Reads all of it
  // first, so that bytes that are missing or unreadable are an error here. Keeps `owner` (such as a lock on the file)
  // as long as the memory, but not the descriptor.
  static Result<std::unique_ptr<WindowMemory>> of_file(int fd, std::uint64_t offset, std::size_t length,
                                                       std::shared_ptr<const void> owner);
  // Copies these bytes, at least one. Errc::busy: copies take limits::kWindowCopiesMax bytes already.
  static Result<std::unique_ptr<WindowMemory>> of_bytes(std::span<const std::byte> bytes);

  ~WindowMemory();
  WindowMemory(const WindowMemory&) = delete;
  WindowMemory& operator=(const WindowMemory&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }
  bool is_file() const { return is_file_; }
  // Call once, when no code of this process uses bytes() any more. The addresses of the last limits::kWithdrawnMax stay
  // reserved.
  void withdraw();

 private:
  WindowMemory(std::span<std::byte> mapped, std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
               bool is_file)
      : mapped_(mapped), bytes_(bytes), owner_(std::move(owner)), is_file_(is_file) {}
  Status read_in() const;
  static Result<std::span<std::byte>> map(int fd, std::uint64_t offset, std::size_t length);

  std::span<std::byte> mapped_;  // whole pages; empty after withdraw()
  std::span<const std::byte> bytes_;
  std::shared_ptr<const void> owner_;
  const bool is_file_;
};

}  // namespace weft
