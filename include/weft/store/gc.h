// Options and report of garbage collection (store/collecting/collector.cc, packs/collect.cc).
#pragma once

#include <cstdint>

namespace weft {

struct GcOptions {
  bool dry_run = false;
  // In a cluster: the registry's revision, read after the newest removal that gc must see. Errc::busy if this store is
  // not complete up to it, or has bare versions: this node does not know their blobs.
  std::uint64_t registry_revision = 0;
  bool all = false;  // rewrite every pack that has dead blobs, however few
};
struct GcReport {
  std::uint64_t versions_reaped = 0;
  std::uint64_t versions_open = 0;                 // removed versions that are open, left for a later gc
  std::uint64_t blobs_freed = 0, bytes_freed = 0;  // logical bytes
  std::uint64_t packs_deleted = 0, packs_compacted = 0;
  std::uint64_t disk_bytes_freed = 0;  // freed when the last reader closes the files
  std::uint64_t busy_packs = 0;        // skipped: being filled, or needed by a prepared publish
  std::uint64_t dead_bytes = 0;        // listed bytes that no version needs, in packs that stay as they are
  std::uint64_t packs_waiting = 0;     // not rewritten, because the disk is full
  std::uint64_t bytes_wanted = 0;      // space for all these rewrites together
  std::uint64_t stale_temporaries = 0;
};

}  // namespace weft
