// Garbage collection of packs, and its parts. One gc of a store runs at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "diskformat/toc.h"
#include "packs/packs.h"
#include "weft/content.h"
#include "weft/gc.h"
#include "weft/progress.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

struct CollectInput {
  GcOptions options;
  // All packs are looked at, and not only those that the index says: a process that died may have left packs.
  bool walk = true;
  // Packs that are looked at in any case: publishes that a registry decides on have brought them, and the index does
  // not know them yet.
  std::vector<PackId> also = {};
  // Might a publish that a registry decides on need this pack, though the index does not say so? Under the writer lock.
  std::function<bool(const PackToc&)> is_relied_on = {};
  // What a removed version needs that is not reaped. Errc::not_found, Errc::corrupt: its manifest is lost.
  std::function<Result<std::vector<ContentId>>(VersionId)> content_of = {};
};
// Temporaries of processes that died. Returns how many there are; `dry_run`: none goes.
Result<std::uint64_t> clear_temporaries(const SafePath& store_path, bool dry_run);
// Frees what no version needs. Packs in which nothing is live are deleted first; then packs with dead blobs are
// rewritten. Temporaries of processes that died go too.
Status collect_packs(Packs& packs, IndexAccess& index, const CollectInput& input, Progress& progress, GcReport& report);

// What removed versions need that are not reaped: a reader may have them open. One thread.
class UnreapedContent {
 public:
  using ContentOf = std::function<Result<std::vector<ContentId>>(VersionId)>;
  explicit UnreapedContent(ContentOf content_of) : content_of_(std::move(content_of)) {}

  // Adds what this state of the index has. A version that was removed after an earlier look is found by the next one.
  Status look(BlobIndex& index);
  bool has(const ContentId& id) const { return ids_.contains(id); }

 private:
  const ContentOf content_of_;
  std::set<VersionId> known_;
  std::unordered_set<ContentId> ids_;
};

// A pack's blobs by whether a version needs them at this place.
struct JudgedPack {
  std::vector<PackEntry> live;
  std::vector<PackEntry> unheld;    // indexed here, needed by no version
  std::vector<PackEntry> unlisted;  // in no index: an import died between finish and publish; a manifest is not needed
  std::uint64_t moved = 0;          // entries whose blob is indexed elsewhere
  std::uint64_t open = 0;           // of the live ones, those that only versions need which are not reaped
  // The index has more blobs in the pack than the table of contents and the index's own rows show: rows are lost, and a
  // blob of `unlisted` may be one that versions need.
  bool lost_rows = false;
  std::size_t indexed() const { return live.size() + unheld.size(); }
  bool all_live() const { return unheld.empty() && unlisted.empty() && moved == 0; }
};
Result<JudgedPack> judge_pack(BlobIndex& index, const UnreapedContent& unreaped, const PackToc& toc);
// The same in as many states of the index as it takes, for a first look.
Result<JudgedPack> look_at_pack(IndexAccess& index, const UnreapedContent& unreaped, const PackToc& toc);

std::uint64_t total_bytes(const std::vector<PackEntry>& entries);

// Does a writer fill the pack at this moment? It may list more blobs than its .toc did a moment ago. True for a pack
// that cannot be asked, false for one that is gone.
bool is_being_filled(const Packs& packs, PackId pack);
// The .pack first: a .toc alone is litter, a .pack alone would be damage.
Status remove_pack(const Packs& packs, PackId pack);

// Packs whose live blobs go into one new pack.
struct RewriteGroup {
  std::vector<PackId> packs;
  std::uint64_t live_bytes = 0;
  std::uint64_t dead_blobs = 0, dead_bytes = 0;  // that go
};
// What the collection of one store shares between its parts.
struct CollectContext {
  Packs& packs;
  IndexAccess& index;
  const CollectInput& input;
  Progress& progress;
  GcReport& report;
  UnreapedContent& unreaped;
};
// The groups one by one, those that need the least space first. A full disk ends it without an error: the report says
// what the rest needs.
Status rewrite_packs(const CollectContext& context, std::vector<RewriteGroup> groups);

}  // namespace weft
