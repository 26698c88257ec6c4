// A pack behind an open descriptor, which keeps the pack open and holds its lock, if any.
#pragma once

#include <cstdint>
#include <utility>

#include "os/file_map.h"
#include "os/sys.h"
#include "weft/bytes/pack.h"
#include "weft/store_rows.h"

namespace weft {

class FdPack final : public PackReader {
 public:
  FdPack(Fd fd, std::uint64_t size, PackId id) : fd_(std::move(fd)), size_(size), id_(id), map_(fd_.get(), size) {}
  int fd() const override { return fd_.get(); }
  std::uint64_t size() const override { return size_; }
  PackId id() const override { return id_; }
  const std::byte* map() const override { return map_.bytes(); }

 private:
  Fd fd_;
  std::uint64_t size_;
  PackId id_;
  FileMap map_;  // maps fd_, so it comes last
};

}  // namespace weft
