// What the kernel remembers of a mount, and how to make it forget. Each call takes locks of the kernel: forgetting a
// name waits for lookups in its directory, which wait for the threads that serve. So never from such a thread.
#pragma once

#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "weft/store_rows.h"

namespace weft {

// Forgetting what the kernel does not know is fine. Any thread but one that serves.
class KernelCache {
 public:
  virtual ~KernelCache() = default;
  // The name is looked up anew at its next use. What stands on it (a working directory below) stays.
  virtual void expire_name(Ino dir, const std::string& name) = 0;
  virtual void forget_pages(Ino ino, std::uint64_t offset, std::uint64_t length) = 0;
};

// Puts pages into the cache. A thread that serves may do it, by the rule of record_reads.h. Any thread.
class PageStore {
 public:
  virtual ~PageStore() = default;
  // 0, or a negative errno: ENOENT when the kernel does not know the node.
  virtual int store_pages(std::uint64_t node, std::uint64_t offset, std::span<const std::byte> bytes) = 0;
};

class SessionPages final : public PageStore {
 public:
  explicit SessionPages(fuse_session* session) : session_(session) {}
  int store_pages(std::uint64_t node, std::uint64_t offset, std::span<const std::byte> bytes) override;

 private:
  fuse_session* session_;
};

// Of a libfuse session, which outlives this.
class SessionCache final : public KernelCache {
 public:
  explicit SessionCache(fuse_session* session) : session_(session) {}
  void expire_name(Ino dir, const std::string& name) override;
  void forget_pages(Ino ino, std::uint64_t offset, std::uint64_t length) override;

 private:
  fuse_session* session_;
};

}  // namespace weft
