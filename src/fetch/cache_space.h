// The disk space that fetched bytes may take: at most the cache's bound, and a part of the disk stays free for
// publishes and gc. Any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "os/file_ops.h"
#include "weft/deadline.h"

namespace weft {

class CacheSpace {
 public:
  using Disk = std::function<std::optional<DiskSpace>()>;

  // `disk` returns the space of the file system of the cache; nothing if it is unknown. Any thread.
  explicit CacheSpace(Disk disk) : disk_(std::move(disk)) {}

  // Returns the free bytes of the disk, with its reserve; UINT64_MAX if they are unknown.
  std::uint64_t available() const;
  // Returns the bytes that the disk can take now without its reserve; UINT64_MAX if they are unknown.
  std::uint64_t left() const;
  // Returns how large a cache may become that takes `used` bytes now. The result is less than `used` if the reserve is
  // used up.
  std::uint64_t bound(std::uint64_t cache_max, std::uint64_t used) const;

 private:
  const Disk disk_;
};

// The last eviction that freed no space on the disk. Its packs are open in mounts, which keep the blocks until they
// close the packs. More evictions would only lose more of the cache. One thread at a time.
class VainEviction {
 public:
  void note(std::uint64_t available, Deadline now);  // free bytes of the disk
  // True for a minute, unless the disk has more free bytes now.
  bool holds(std::uint64_t available, Deadline now) const;

 private:
  Deadline until_{};
  std::uint64_t at_ = 0;
};

}  // namespace weft
