// A file on disk as the source of a format.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "os/sys.h"
#include "weft/arrival.h"
#include "weft/model/format.h"

namespace weft {

class FdSource final : public ByteSource {
 public:
  // `await`: of a file that arrives while it is read.
  FdSource(int fd, std::uint64_t size, std::string where, AwaitBytes await = {})
      : fd_(fd), size_(size), where_(std::move(where)), arrived_(std::move(await), size) {}

  std::uint64_t size() const override { return size_; }
  Status read(std::uint64_t offset, std::span<std::byte> out) override {
    if (offset > size_ || out.size() > size_ - offset)
      return Error{Errc::invalid, fmt::format("{}: expected {} bytes at {}, got the end of the file at {}", where_,
                                              out.size(), offset, size_)};
    WEFT_CHECK(arrived_.wait({offset, out.size()}));
    return read_exact(fd_, offset, out, where_);
  }

 private:
  int fd_;  // owned by the caller
  std::uint64_t size_;
  std::string where_;
  ArrivedRun arrived_;
};

}  // namespace weft
