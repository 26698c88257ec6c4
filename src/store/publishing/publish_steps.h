// The steps that a publish of this node and a prepared publish share.
#pragma once

#include <span>
#include <vector>

#include "catalog/manifests.h"
#include "index/env.h"
#include "packs/blob_index.h"
#include "packs/import.h"
#include "store/parts/parts.h"
#include "weft/result.h"
#include "weft/store/publish.h"

namespace weft {

// A manifest that a publish has made durable under a temporary name.
struct SealedManifest {
  Digest digest;
  StagedManifest staged;
};

// Returns the ids of the packs that hold these blobs, without duplicates.
std::vector<PackId> pack_ids(std::span<const NewBlob> blobs);
Status check_request(const PublishRequest& request);  // Errc::invalid: a limit is exceeded

// Makes the packs and the manifest of a publish durable under temporary names. They share one wait for the disk.
Result<SealedManifest> seal(StoreParts& parts, const GiveManifest& manifest, Importer& packs);
// Gives the sealed files their final names. The caller holds the writer lock, so a publish that gives up waiting for
// the lock leaves nothing in place.
Status place(StoreParts& parts, SealedManifest manifest, Importer& packs);
// Takes the writer lock while the store has all content that the import shares with it. If gc has freed shared content
// meanwhile, the import stores it again and retries. Each round leaves less shared content, so the loop ends.
Result<WriterLock> lock_with_shared(StoreParts& parts, Importer& packs);
// Preloads index pages for the publish. Best effort: the transaction itself reports errors.
void foresee(StoreParts& parts, const PublishRequest& request);
// Points the index to new copies of blobs whose stored copy was found damaged. The journal does not record that, as for
// a compaction: if a rebuild finds two copies, it takes the one that verifies.
Status replace_damaged(StoreParts& parts, const WriterLock& lock, std::span<const NewBlob> new_blobs);
// Removes the packs of a publish that failed or made no version from packs/, unless the journal may name them. Best
// effort: gc removes the rest, and the manifest, which another publish may need.
void discard(StoreParts& parts, std::span<const NewBlob> blobs);

}  // namespace weft
