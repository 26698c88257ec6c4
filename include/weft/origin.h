// The origin: a directory on the site's parallel file system that holds everything durably (man weft-store.5).
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weft/cluster_store.h"
#include "weft/progress.h"
#include "weft/result.h"
#include "weft/source.h"

namespace weft {

struct OriginOptions {
  unsigned threads = 4;      // for what is small; those in calls that hang may be left behind
  unsigned large_reads = 2;  // at once, of a MiB and more, on threads of their own
};

// Reads from the origin in `path`. The directory need not be there, or answer: it is opened when it is first asked, and
// again while that fails.
std::shared_ptr<BlobSource> origin_source(std::string path, const OriginOptions& options = {});

struct OriginTotals {
  std::uint64_t packs = 0, bytes = 0;  // of packs on its disk
  std::uint64_t manifests = 0, versions = 0;
};
// Of all that nodes have put there. Errc::timed_out when the directory does not answer.
Result<OriginTotals> origin_totals(const std::string& path, std::chrono::milliseconds patience);

// Packs that this node must keep, and that became cache because the origin has them.
struct HandOverReport {
  std::uint64_t packs = 0, disk_bytes = 0;            // that are cache now
  std::uint64_t kept_packs = 0, kept_disk_bytes = 0;  // that stay this node's own
};

struct RestoreOptions {
  bool accept_loss = false;  // go on without what is damaged or missing there
  Patience patience = {};    // with another who makes a store there
};
struct RestoreReport {
  std::uint64_t models = 0, versions = 0, removed = 0, tags = 0;
  std::uint64_t packs = 0, bytes = 0;  // verified bytes of blobs, those of an earlier try as well
  std::vector<std::string> problems;   // what is damaged or missing at the origin, one line each
  std::vector<std::string> mended;     // damaged there and nothing lost: it was whole elsewhere, or told by a name
  bool refused = false;                // for the problems: there is no store
};
// Makes a store of one node in `store`, a directory that is empty or not there, from an origin alone: all versions with
// their numbers, times, parents and texts, tags as they stood last, removed ones as tombstones. Every byte is verified.
// With `accept_loss` a version that is not whole becomes a tombstone. Interrupted (Errc::cancelled), refused or failed
// it leaves no store, but what it has copied: again, it goes on there. The origin is only read; calls may hang as long
// as its file system does. Errc::not_found: no origin; others as Store::create. Memory: some 200 bytes a tensor.
Result<RestoreReport> restore_store(const std::string& origin, const std::string& store, const RestoreOptions& options,
                                    Progress& progress);

// What a registry that was lost has said, from the origin alone, in an order in which it may have come: versions, live
// and removed, then tags. Problems and losses as restore_store(), but that bytes are not read: packs and their tables
// of contents are looked at alone. The origin is their publisher.
//
// The registry that is filled so takes the origin over, by take_over_origin(): nodes of the lost cluster, if any still
// run, are refused there from then on.
struct OriginRegistry {
  std::vector<MirrorChange> changes;  // none when it is refused
  RestoreReport report;
};
Result<OriginRegistry> registry_at_origin(const std::string& origin, bool accept_loss, Progress& progress);
Status take_over_origin(const std::string& origin, std::string_view cluster);

}  // namespace weft
