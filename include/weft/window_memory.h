// Memory that a peer may read for a while: bytes that cannot change under it, mapped read-only.
//
// Any thread. A read that is under way when its window closes may still be answered from this place. So memory whose
// reader has not said that it is done is withdrawn before it goes: its pages and its file are let go, and its addresses
// are kept from other use, so that what is sent late is zeros rather than somebody else's bytes. Sent it must be: where
// libfabric's net (1.17) cannot read what it sends, it leaves the rest out and goes on, and from then on the peer takes
// every message for what is left of this one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "weft/result.h"

namespace weft {

class WindowMemory {
 public:
  // [offset, offset + length) of a file, at least one byte; it must not shrink meanwhile. All of it is read first: what
  // the file does not have, or its disk does not give, is an error here. `owner` (such as a lock on it) is kept for as
  // long as the memory. The descriptor is not.
  static Result<std::unique_ptr<WindowMemory>> of_file(int fd, std::uint64_t offset, std::size_t length,
                                                       std::shared_ptr<const void> owner);
  // A copy of these bytes, at least one. Errc::busy when there are copies of limits::kWindowCopiesMax bytes.
  static Result<std::unique_ptr<WindowMemory>> of_bytes(std::span<const std::byte> bytes);

  ~WindowMemory();
  WindowMemory(const WindowMemory&) = delete;
  WindowMemory& operator=(const WindowMemory&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }
  bool is_file() const { return is_file_; }
  // Nobody of this process may use bytes() any more, nor call this twice. The addresses of the last
  // limits::kWithdrawnMax are kept.
  void withdraw();

 private:
  WindowMemory(std::span<std::byte> mapped, std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
               bool is_file)
      : mapped_(mapped), bytes_(bytes), owner_(std::move(owner)), is_file_(is_file) {}
  Status read_in() const;
  static Result<std::span<std::byte>> map(int fd, std::uint64_t offset, std::size_t length);

  std::span<std::byte> mapped_;  // whole pages; empty when withdrawn
  std::span<const std::byte> bytes_;
  std::shared_ptr<const void> owner_;
  const bool is_file_;
};

}  // namespace weft
