// The kernel's caches of a mount, and how to invalidate them. Each call takes kernel locks: invalidating a name waits
// for lookups in its directory, and those wait for serving threads. So a serving thread must not call it.
#pragma once

#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "weft/store_rows.h"

namespace weft {

// Invalidating what the kernel has not cached is harmless. Any thread; serving threads call store_pages() only.
class KernelCache {
 public:
  virtual ~KernelCache() = default;
  // The kernel looks the name up again at its next use. Users of the old entry (a working directory below it) keep it.
  virtual void expire_name(Ino dir, const std::string& name) = 0;
  virtual void forget_pages(Ino ino, std::uint64_t offset, std::uint64_t length) = 0;
  // Stores pages in the page cache, by the rule of record_reads.h. Returns 0 or a negative errno: ENOENT if the kernel
  // does not know the node.
  virtual int store_pages(std::uint64_t node, std::uint64_t offset, std::span<const std::byte> bytes) = 0;
};

// The caches of a libfuse session, which outlives this.
class SessionCache final : public KernelCache {
 public:
  explicit SessionCache(fuse_session* session) : session_(session) {}
  void expire_name(Ino dir, const std::string& name) override;
  void forget_pages(Ino ino, std::uint64_t offset, std::uint64_t length) override;
  int store_pages(std::uint64_t node, std::uint64_t offset, std::span<const std::byte> bytes) override;

 private:
  fuse_session* session_;
};

}  // namespace weft
