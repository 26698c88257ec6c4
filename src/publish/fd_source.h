// A file on disk as the source of a format.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "os/sys.h"
#include "weft/model/format.h"

namespace weft {

class FdSource final : public ByteSource {
 public:
  FdSource(int fd, std::uint64_t size, std::string where) : fd_(fd), size_(size), where_(std::move(where)) {}

  std::uint64_t size() const override { return size_; }
  Status read(std::uint64_t offset, std::span<std::byte> out) override {
    if (offset > size_ || out.size() > size_ - offset)
      return Error{Errc::invalid, fmt::format("{}: expected {} bytes at {}, got the end of the file at {}", where_,
                                              out.size(), offset, size_)};
    return read_exact(fd_, offset, out, where_);
  }

 private:
  int fd_;  // owned by the caller
  std::uint64_t size_;
  std::string where_;
};

}  // namespace weft
