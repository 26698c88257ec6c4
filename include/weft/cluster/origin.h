// The origin (origin/dir.cc): a directory on the site's parallel file system that holds everything durably (man
// weft-store.5).
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weft/bytes/source.h"
#include "weft/progress.h"
#include "weft/result.h"
#include "weft/store/cluster_store.h"

namespace weft {

class PaceGate;  // pace/pace_gate.h

// Returns a source that reads from the origin in `path`. The directory need not exist or respond: it is opened at the
// first read, and again after a failure. `gate` paces the reads; null: nothing does.
std::shared_ptr<BlobSource> origin_source(std::string path, std::shared_ptr<PaceGate> gate = nullptr);

// Checks that a daemon could use the origin in `path`, and changes nothing. `known` is the id of the origin that the
// store has written to. The directory may have no origin yet if `known` is empty. `cluster` is the store's cluster, and
// is empty before the store has joined one. Errors as those of the daemon. Errc::permission: this user cannot write
// there. Errc::timed_out: the directory does not answer.
Status check_origin(const std::string& path, const std::string& known, const std::string& cluster,
                    std::chrono::milliseconds patience);

// Returns whether the origin has the content of this manifest. `known` and `cluster` as in check_origin().
// Errc::timed_out: the directory does not answer.
Result<bool> is_at_origin(const std::string& path, const std::string& known, const std::string& cluster,
                          const Digest& manifest, std::chrono::milliseconds patience);

// Returns those of these manifests whose content the origin lacks, sorted. As is_at_origin().
Result<std::vector<Digest>> lacking_at_origin(const std::string& path, const std::string& known,
                                              const std::string& cluster, std::vector<Digest> manifests,
                                              std::chrono::milliseconds patience);

struct OriginTotals {
  std::uint64_t packs = 0, bytes = 0;  // packs, and their bytes on the disk
  std::uint64_t manifests = 0, versions = 0;
};
// Returns the totals of all nodes. Errc::timed_out: the directory does not answer.
Result<OriginTotals> origin_totals(const std::string& path, std::chrono::milliseconds patience);

// Result of a hand-over of owned packs, which become cache because the origin has their bytes.
struct HandOverReport {
  std::uint64_t packs = 0, disk_bytes = 0;            // packs that are cache
  std::uint64_t kept_packs = 0, kept_disk_bytes = 0;  // packs that stay owned
};

// Result of a collection of an origin (origin/collect.h).
struct OriginGcReport {
  std::uint64_t versions = 0;                      // live versions, and those below
  std::uint64_t versions_in_grace = 0;             // versions that were removed within the grace period
  std::uint64_t packs_freed = 0, bytes_freed = 0;  // bytes on the disk
  std::uint64_t manifests_freed = 0;
  std::uint64_t packs = 0, dead_bytes = 0;  // kept packs, and the bytes of their dead blobs
  std::uint64_t unfinished_freed = 0;       // files that writers left unfinished
  std::uint64_t packs_rewritten = 0;        // packs whose needed blobs were copied to new packs
  // Rewritten packs, and packs of an earlier list, that stay because a version that is not at the origin yet may need
  // them. The next collection after its stage-out frees the packs.
  std::uint64_t packs_spared = 0;
};

// Result of a check of an origin (origin/check.h).
struct OriginFsckReport {
  std::uint64_t versions = 0;  // live versions that are at the origin
  std::uint64_t waiting = 0;   // live versions that are not there yet
  std::uint64_t manifests = 0, packs = 0, records = 0, bytes_read = 0;
  std::uint64_t damaged = 0;  // faults, of which `problems` and `repaired` have the first ones
  std::vector<std::string> problems, repaired;
};

struct RestoreOptions {
  bool accept_loss = false;  // continue without data that is damaged or missing there
  Patience patience = {};    // for another process that makes a store there
};
struct RestoreReport {
  std::uint64_t models = 0, versions = 0, removed = 0, tags = 0;
  std::uint64_t packs = 0, bytes = 0;  // verified bytes of blobs, with those of an earlier attempt
  std::vector<std::string> problems;   // damage and losses at the origin, one line each
  std::vector<std::string> mended;     // damaged there, and recovered: from another copy, or from a name
  bool refused = false;                // no store was made, because of `problems`
};
// Makes a store of one node in `store`, a directory that is empty or does not exist, from an origin alone: all versions
// with their numbers, times, parents and texts, tags in their last state, removed versions as tombstones. Verifies
// every byte. With `accept_loss` an incomplete version becomes a tombstone. If it is interrupted (Errc::cancelled),
// refused or fails, there is no store, but the next attempt continues with the bytes that were copied. Only reads the
// origin; calls may hang as long as its file system does. Errc::not_found: no origin; others as Store::create. Memory:
// about 200 bytes per tensor.
Result<RestoreReport> restore_store(const std::string& origin, const std::string& store, const RestoreOptions& options,
                                    Progress& progress);

// Rebuilds a lost registry from the origin alone: versions, live and removed, then tags, in an order in which they may
// have been published. Problems and losses are as in restore_store(), but blobs are not read: only packs and their
// tables of contents are checked.
//
// The new registry, filled with these changes, takes over the origin by take_over_origin(). After that the origin
// refuses nodes of the lost cluster that still run.
struct OriginRegistry {
  std::vector<MirrorChange> changes;  // empty if refused
  RestoreReport report;
};
enum class Publishers : std::uint8_t {
  as_published,  // the nodes that published the versions still have them: leaves out what is not complete at the origin
  origin,        // these nodes are lost: the origin is the publisher, in the form of a node that does not exist
};
Result<OriginRegistry> registry_at_origin(const std::string& origin, bool accept_loss, Publishers publishers,
                                          Progress& progress);
Status take_over_origin(const std::string& origin, std::string_view cluster);

}  // namespace weft
