// Garbage collection of packs. At most one gc of a store runs at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <unordered_set>
#include <vector>

#include "diskformat/toc.h"
#include "packs/packs.h"
#include "weft/content.h"
#include "weft/progress.h"
#include "weft/result.h"
#include "weft/store/gc.h"
#include "weft/store_rows.h"

namespace weft {

struct CollectInput {
  GcOptions options;
  // Look at all packs, not only at those queued in the index: a dead process may have left packs that the index does
  // not know.
  bool walk = true;
  // More packs to judge: prepared publishes have placed them, but the index does not know them yet.
  std::vector<PackId> also = {};
  // True if a prepared publish may need the pack although the index does not say so. gc acts on a pack only after a
  // call under the writer lock.
  std::function<bool(const PackToc&)> is_relied_on = {};
  // Returns the blobs of a removed version that is not reaped yet. Errc::not_found, Errc::corrupt: its manifest is
  // lost.
  std::function<Result<std::vector<ContentId>>(VersionId)> content_of = {};
};
// Removes the temporary directories of dead processes below `tmp` and returns their number. A dry run only counts them.
Result<std::uint64_t> clear_temporaries(const SafePath& tmp, bool dry_run);
// Frees the space of blobs that no version needs. Deletes packs without live blobs first, then rewrites packs with dead
// blobs. Removes the temporary directories of dead processes too.
Status collect_packs(Packs& packs, IndexAccess& index, const CollectInput& input, Progress& progress, GcReport& report);

// The blobs of removed versions that are not reaped yet: a reader may have such a version open. One thread.
class UnreapedContent {
 public:
  using ContentOf = std::function<Result<std::vector<ContentId>>(VersionId)>;
  explicit UnreapedContent(ContentOf content_of) : content_of_(std::move(content_of)) {}

  // Adds the unreaped versions of this state of the index. Call it again to include versions that were removed since.
  Status refresh(BlobIndex& index);
  bool has(const ContentId& id) const { return ids_.contains(id); }

 private:
  const ContentOf content_of_;
  std::set<VersionId> known_;
  std::unordered_set<ContentId> ids_;
};

// The blobs of a pack, sorted by whether a version needs them in this pack.
struct JudgedPack {
  std::vector<PackEntry> live;
  std::vector<PackEntry> unheld;    // indexed here, needed by no version
  std::vector<PackEntry> unlisted;  // not indexed: the import died before its publish, or no version needs the manifest
  std::uint64_t moved = 0;          // entries whose blob is indexed in another place
  std::uint64_t open = 0;           // number of `live` blobs that only unreaped versions need
  // The index counts more blobs in the pack than the .toc and the index's own rows show. So rows are lost, and versions
  // may need blobs of `unlisted`.
  bool lost_rows = false;
  std::size_t indexed() const { return live.size() + unheld.size(); }
  bool all_live() const { return unheld.empty() && unlisted.empty() && moved == 0; }
};
Result<JudgedPack> judge_pack(BlobIndex& index, const UnreapedContent& unreaped, const PackToc& toc);
// The same without the writer lock, for a first verdict. Reads a large pack in several states of the index.
Result<JudgedPack> judge_pack(IndexAccess& index, const UnreapedContent& unreaped, const PackToc& toc);

std::uint64_t total_bytes(const std::vector<PackEntry>& entries);

// True if a writer is filling the pack, so that its .toc may list more blobs soon. True also if that is unknown, false
// if the pack is gone.
bool is_being_filled(const Packs& packs, PackId pack);
// Removes the .copy of a pack of manifests first, then the .pack: a .toc alone is litter, a .pack alone would be
// damage, and a .copy alone is what a lost .pack leaves.
Status remove_pack(const PackDir& packs, PackId pack);

// Packs whose live blobs are copied into one new pack, which is cached if they are.
struct RewriteGroup {
  std::vector<PackId> packs;
  bool cached = false;
  std::uint64_t live_bytes = 0;
  std::uint64_t dead_blobs = 0, dead_bytes = 0;  // to be freed
};
// The state that the parts of one gc run share.
struct CollectContext {
  Packs& packs;
  IndexAccess& index;
  const CollectInput& input;
  Progress& progress;
  GcReport& report;
  UnreapedContent& unreaped;
};
// True if a publish relies on the pack or a writer fills it. Such a pack is left for the next gc, and counted as busy.
bool is_busy(const CollectContext& context, const PackToc& toc);
// Rewrites the groups one by one, those with the fewest live bytes first. A full disk is no error: the report then
// names the packs that wait and the space that they need.
Status rewrite_packs(const CollectContext& context, std::vector<RewriteGroup> groups);

}  // namespace weft
