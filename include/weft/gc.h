// Options and report of garbage collection (packs/collect.h, store/reap.cc).
#pragma once

#include <cstdint>

namespace weft {

struct GcOptions {
  bool dry_run = false;
  // In a cluster: the registry's revision, read after the newest removal that gc is to see. Errc::busy while this store
  // does not know everything up to it, or has bare versions: nobody here knows what they need.
  std::uint64_t registry_revision = 0;
  bool all = false;  // rewrite every pack that has dead blobs, however few
};
struct GcReport {
  std::uint64_t versions_reaped = 0;
  std::uint64_t versions_open = 0;                 // removed, and left for the next time: somebody has them open
  std::uint64_t blobs_freed = 0, bytes_freed = 0;  // logical
  std::uint64_t packs_deleted = 0, packs_compacted = 0;
  std::uint64_t disk_bytes_freed = 0;  // when the last reader that has them open closes them
  std::uint64_t busy_packs = 0;        // skipped: being filled, or needed by a publish that the registry decides on
  std::uint64_t dead_bytes = 0;        // listed bytes that no version needs, and whose packs stay as they are
  std::uint64_t packs_waiting = 0;     // not rewritten, because the disk is full; to rewrite them all at once takes
  std::uint64_t bytes_wanted = 0;      // so much space
  std::uint64_t stale_temporaries = 0;
};

}  // namespace weft
