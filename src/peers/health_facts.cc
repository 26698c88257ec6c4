#include "peers/health_facts.h"

#include <chrono>
#include <set>
#include <vector>

#include "os/file_ops.h"
#include "os/safe_path.h"
#include "os/sys.h"
#include "weft/deadline.h"
#include "weft/model/manifest.h"
#include "weft/store/snapshot.h"
#include "weft/store/walk.h"

namespace weft {
namespace {

constexpr auto kJudgeMax = std::chrono::seconds(1);

// Returns the manifests of all versions that a listing of ids names.
template <class List>
Result<std::set<Digest>> manifests_in(Store& store, const List& list) {
  std::set<Digest> out;
  for (VersionId from = 0;;) {
    WEFT_TRY(const auto snapshot, store.snapshot());
    WEFT_TRY(const std::vector<VersionId> some, ((*snapshot).*list)(from, limits::kRowsPerSnapshot / 2));
    if (some.empty()) return out;
    for (const VersionId id : some) {
      WEFT_TRY(const VersionRow row, snapshot->version(id));
      out.insert(row.manifest);
    }
    from = some.back() + 1;
  }
}

std::uint64_t reserve_bytes(Store& store) {
  const auto file = stat_file(store.directory() / "index" / "spare");
  return file.ok() ? static_cast<std::uint64_t>(file->st_size) : 0;
}

}  // namespace

bool holds_whole(Store& store, const Digest& manifest, const std::function<bool()>& ending) {
  const auto bytes = store.open_manifest(manifest);
  if (!bytes.ok()) return false;
  const auto decoded = decode_manifest((*bytes)->bytes());
  if (!decoded.ok()) return false;
  Renewed renewed(store);
  for (const File& file : decoded->files)
    for (const Extent& extent : file.extents) {
      if (ending()) return false;
      const auto now = renewed.get();
      if (extent.id.length > 0 && (!now.ok() || !(*now)->find_blob(extent.id).ok())) return false;
    }
  return true;
}

Result<PeerHealth> health_facts(Store& store, const AskHealth& ask) {
  PeerHealth facts;
  facts.clock_ns = now_ns();
  if (const auto space = disk_space(store.directory().root().fd())) {
    facts.free_bytes = space->available;
    facts.disk_bytes = space->total;
  }
  facts.reserve_bytes = reserve_bytes(store);
  WEFT_TRY(const auto unsaved, manifests_in(store, &Snapshot::unsaved));
  facts.unsaved = unsaved.size();
  if (ask.manifests.empty()) return facts;
  WEFT_TRY(const auto in_memory, manifests_in(store, &Snapshot::in_memory));
  WEFT_TRY(const auto pinned, manifests_in(store, &Snapshot::pinned));
  const Deadline end = deadline_in(kJudgeMax);
  for (const Digest& manifest : ask.manifests) {
    if (!facts.states.empty() && Deadline::clock::now() >= end) break;
    const bool whole = holds_whole(store, manifest, [] { return false; });
    const bool saved = !unsaved.contains(manifest) && !in_memory.contains(manifest);
    const unsigned state = (whole ? kStateWhole : 0U) | (saved ? kStateSaved : 0U) |
                           (whole && pinned.contains(manifest) ? kStatePinned : 0U);
    facts.states.push_back(static_cast<std::uint8_t>(state));
  }
  return facts;
}

}  // namespace weft
