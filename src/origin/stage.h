// Copies a version to the origin.
#pragma once

#include <cstdint>
#include <map>

#include "blobs/revocable_store.h"
#include "origin/dir.h"
#include "weft/progress.h"
#include "weft/store_rows.h"

namespace weft {

// Negative cache: blobs found neither on this node nor at the origin. stage_version() searches for a blob
// again if the names of places or the latest collection have changed since. A collection writes places after its
// announcement, under new names of manifests.
struct SearchedOrigin {
  Digest names;                // SHA-256 of the names of all places
  std::uint64_t sequence = 0;  // of the latest collection
  bool operator==(const SearchedOrigin&) const = default;
};
using SearchedFor = std::map<ContentId, SearchedOrigin>;

// Copies to the origin everything that the version needs and the origin lacks, durably: packs, the manifest, the places
// of its blobs, and its journal record. Errc::not_found: this node lacks a blob that another node has not written to
// the origin yet. Errc::absent: no node is known that would write the blob. Errc::cancelled. Verifies all bytes;
// `progress` counts the copied ones. Several nodes may copy at the same time, also the same version. May hang in the
// origin's file system. Relies on no file that a collection may delete, by the list that `origin` knows
// (origin/collect.h). If the store is taken back meanwhile, it is not used again: Errc::cancelled. `gate`: as for
// copy_pack() (origin/copy.h).
Status stage_version(const RevocableStore& store, const OriginDir& origin, const VersionRow& row, Progress& progress,
                     SearchedFor& searched_for, PaceGate* gate = nullptr);

}  // namespace weft
