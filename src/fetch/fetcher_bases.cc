// Chooses the base of a version that is being fetched: a local version whose tensors resemble it. Chunks may come as
// differences from the base, and equal chunks are not requested (fetcher_same.cc).
#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "base/log.h"
#include "base/sha256.h"
#include "fetch/fetcher.h"
#include "os/sys.h"
#include "weft/model/base_pairs.h"
#include "weft/store/walk.h"

namespace weft {
namespace {

constexpr std::size_t kCandidatesMax = 8;  // versions to examine
constexpr std::uint64_t kNumbersMax = 64;  // version numbers to try in each direction
constexpr auto kChoiceHolds = std::chrono::seconds(2);

std::string name_of(const VersionRow& row) {
  return fmt::format("{}@{}", row.model_name, row.number);
}

}  // namespace

// Returns candidates for the base: live versions with local manifests. Earlier versions of the same model come first,
// the nearest first, then later ones, then the parents.
Result<std::vector<VersionId>> Fetcher::base_candidates(const VersionRow& row) {
  std::vector<VersionId> out;
  WEFT_TRY(const auto snapshot, store_.snapshot());
  const auto add = [&](const Result<VersionRow>& other) {
    if (!other.ok() || other->removed || other->id == row.id || out.size() >= kCandidatesMax) return;
    const auto bare = snapshot->is_bare(other->id);
    if (bare.ok() && !*bare && std::ranges::find(out, other->id) == out.end()) out.push_back(other->id);
  };
  for (std::uint64_t back = 1; back < row.number && back <= kNumbersMax; ++back)
    add(snapshot->version(row.model, row.number - back));
  for (std::uint64_t ahead = 1; ahead <= kNumbersMax && out.size() < kCandidatesMax; ++ahead) {
    const auto other = snapshot->version(row.model, row.number + ahead);
    if (!other.ok()) break;
    add(other);
  }
  for (const ParentRef& parent : row.parents) add(snapshot->version(parent.id));
  return out;
}

// True if at least half of the bytes of the bases are local or in a transfer.
bool Fetcher::has_most_of(const BasePairs& pairs) {
  std::uint64_t all = 0;
  std::uint64_t local = 0;
  std::uint64_t absent = 0;
  for (const auto& [blob, pair] : pairs) all += pair.base.length;
  Renewed renewed(store_);
  for (const auto& [blob, pair] : pairs) {
    if (2 * local >= all || 2 * absent > all) break;
    const auto now = renewed.get();
    if (!now.ok()) return false;
    bool is_here = (*now)->find_blob(pair.base).ok();
    if (!is_here) {
      const MutexLock lock(mutex_);
      is_here = homes_.contains(pair.base);
    }
    (is_here ? local : absent) += pair.base.length;
  }
  return all > 0 && 2 * local >= all;
}

// Returns the bases of a version; null if no candidate is good enough. Transfers of one version share them if they
// begin within kChoiceHolds.
std::shared_ptr<VersionBases> Fetcher::bases_for(const DecodedVersion& content) {
  {
    const MutexLock lock(mutex_);
    if (!policy_.sparse) return nullptr;
  }
  const auto now = Clock::now();
  if (chosen_.version == content.row.id && chosen_.until > now) return chosen_.bases;
  const auto before = chosen_.version == content.row.id ? chosen_.bases : nullptr;
  chosen_ = {content.row.id, {}, nullptr};
  const auto candidates = base_candidates(content.row);
  if (!candidates.ok()) return nullptr;
  for (const VersionId candidate : *candidates) {
    const auto other = manifests_.content(candidate);
    if (!other.ok()) continue;
    auto pairs = pair_bases(content.manifest, (*other)->manifest);
    if (!has_most_of(pairs)) continue;
    const std::string base = name_of((*other)->row);
    chosen_.bases = before && before->base() == base
                        ? before
                        : std::make_shared<VersionBases>(name_of(content.row), base, std::move(pairs));
    break;
  }
  chosen_.until = Clock::now() + kChoiceHolds;
  return chosen_.bases;
}

// Marks the blobs to compare with a base. Call it before the transfer is shared.
void Fetcher::expect_comparisons(Transfer& transfer) const {
  for (std::size_t blob = 0; transfer.bases && blob < transfer.plan.blobs.size(); ++blob) {
    const ContentId& id = transfer.plan.blobs[blob].id;
    if (chunk_count(id.length) > 1 && transfer.bases->find(id)) transfer.expect_comparison(blob);
  }
}

// Returns the places of the runs' bases. If a run has no base, or its base is not local, the place has no pack.
std::vector<RunBase> Fetcher::places_of(std::span<const std::optional<BasePair>> pairs,
                                        std::span<const ChunkRun> runs) {
  std::vector<RunBase> out(runs.size());
  std::vector<ChunkRun> wanted;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (!pairs[i]) continue;
    out[i] = {pairs[i]->base, pairs[i]->width, {}};
    wanted.push_back({pairs[i]->base, runs[i].first, runs[i].count});
  }
  if (wanted.empty()) return out;
  auto places = here_if_any(*this, wanted);
  for (std::size_t i = 0, next = 0; i < runs.size(); ++i)
    if (pairs[i]) out[i].place = std::move(places[next++]);
  return out;
}

// Adds the local bases of the runs to `aid`, locked until the read is over.
void Fetcher::lend_bases(const std::shared_ptr<VersionBases>& bases, std::span<const ChunkRun> runs, ReadAid& aid) {
  if (!bases || !sources_.codes()) return;
  {
    const MutexLock lock(mutex_);
    if (!policy_.sparse) return;
  }
  std::vector<std::optional<BasePair>> pairs;
  for (const ChunkRun& run : runs) pairs.push_back(bases->find_to_code(run.id));
  if (std::ranges::none_of(pairs, [](const auto& pair) { return pair.has_value(); })) return;
  aid.bases = places_of(pairs, runs);
  aid.is_damaged = [this, bases](const RunBase& base, std::uint64_t chunk) {
    if (is_sound(base, chunk)) return false;
    note_damage(*bases, base.id);
    return true;
  };
}

// True if a chunk of a base matches its digest. The chunk is looked up, because `base.place` is that of a run's first
// chunk.
bool Fetcher::is_sound(const RunBase& base, std::uint64_t chunk) {
  const ChunkRun run{base.id, chunk, 1};
  const auto digests = this->digests(base.id);
  const auto places = here_if_any(*this, std::span(&run, 1));
  if (!digests.ok() || chunk >= digests->size() || !places.front().pack) return false;
  std::vector<std::byte> bytes(run.length());
  if (!read_exact(places.front().pack->fd(), places.front().offset, bytes, "a base").ok()) return false;
  return sha256(bytes) == (*digests)[chunk];
}

void Fetcher::note_damage(VersionBases& bases, const ContentId& base) {
  if (bases.leave_out(base)) report_damage(base);
}

void Fetcher::report_damage(const ContentId& id) {
  log_warning("stored bytes of the {} bytes with digest {} are damaged", id.length, to_hex(id.root));
  if (options_.damaged) options_.damaged(id);
}

void Fetcher::note_coded(const std::shared_ptr<VersionBases>& bases, const CodedCounts& counts) {
  if (!bases || (counts.asked == 0 && counts.failed == 0 && counts.same_bytes == 0)) return;
  bases->note(counts);
  const MutexLock lock(mutex_);
  coded_ += counts;
  last_coded_ = bases;
}

}  // namespace weft
