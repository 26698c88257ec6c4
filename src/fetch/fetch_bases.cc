#include "fetch/fetch_bases.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "base/log.h"
#include "base/sha256.h"
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
Result<std::vector<VersionId>> FetchBases::candidates_for(const VersionRow& row) const {
  std::vector<VersionId> out;
  WEFT_TRY(const auto snapshot, parts_.store.snapshot());
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
bool FetchBases::has_most_of(const BasePairs& pairs) const {
  std::uint64_t all = 0;
  std::uint64_t local = 0;
  std::uint64_t absent = 0;
  for (const auto& [blob, pair] : pairs) all += pair.base.length;
  Renewed renewed(parts_.store);
  for (const auto& [blob, pair] : pairs) {
    if (2 * local >= all || 2 * absent > all) break;
    const auto now = renewed.get();
    if (!now.ok()) return false;
    const bool is_here = (*now)->find_blob(pair.base).ok() || parts_.is_coming(pair.base);
    (is_here ? local : absent) += pair.base.length;
  }
  return all > 0 && 2 * local >= all;
}

void FetchBases::allow(bool allowed) {
  const MutexLock lock(mutex_);
  allowed_ = allowed;
}

bool FetchBases::are_allowed() const {
  const MutexLock lock(mutex_);
  return allowed_;
}

std::shared_ptr<VersionBases> FetchBases::best_of(std::span<const VersionId> candidates, const DecodedVersion& version,
                                                  const std::shared_ptr<VersionBases>& before) const {
  for (const VersionId candidate : candidates) {
    const auto other = parts_.manifests.content(candidate);
    if (!other.ok()) continue;
    auto pairs = pair_bases(version.manifest, (*other)->manifest);
    if (!has_most_of(pairs)) continue;
    const std::string base = name_of((*other)->row);
    if (before && before->base() == base) return before;
    return std::make_shared<VersionBases>(name_of(version.row), base, std::move(pairs));
  }
  return nullptr;
}

std::shared_ptr<VersionBases> FetchBases::choose(const DecodedVersion& version) {
  std::shared_ptr<VersionBases> before;
  {
    const MutexLock lock(mutex_);
    if (!allowed_) return nullptr;
    if (chosen_.version == version.row.id) {
      if (chosen_.until > Clock::now()) return chosen_.bases;
      before = chosen_.bases;
    }
  }
  Choice choice{version.row.id, {}, nullptr};
  if (const auto candidates = candidates_for(version.row); candidates.ok()) {
    choice.bases = best_of(*candidates, version, before);
    choice.until = Clock::now() + kChoiceHolds;
  }
  const MutexLock lock(mutex_);
  chosen_ = choice;
  return choice.bases;
}

std::vector<RunBase> FetchBases::places_of(std::span<const std::optional<BasePair>> pairs,
                                           std::span<const ChunkRun> runs) const {
  std::vector<RunBase> out(runs.size());
  std::vector<ChunkRun> wanted;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (!pairs[i]) continue;
    out[i] = {pairs[i]->base, pairs[i]->width, {}};
    wanted.push_back({pairs[i]->base, runs[i].first, runs[i].count});
  }
  if (wanted.empty()) return out;
  auto places = here_if_any(parts_.local, wanted);
  for (std::size_t i = 0, next = 0; i < runs.size(); ++i)
    if (pairs[i]) out[i].place = std::move(places[next++]);
  return out;
}

void FetchBases::lend(const std::shared_ptr<VersionBases>& bases, std::span<const ChunkRun> runs, ReadAid& aid) {
  if (!bases || !parts_.sources.codes() || !are_allowed()) return;
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
bool FetchBases::is_sound(const RunBase& base, std::uint64_t chunk) const {
  const ChunkRun run{base.id, chunk, 1};
  const auto digests = parts_.local.digests(base.id);
  const auto places = here_if_any(parts_.local, std::span(&run, 1));
  if (!digests.ok() || chunk >= digests->size() || !places.front().pack) return false;
  std::vector<std::byte> bytes(run.length());
  if (!read_exact(places.front().pack->fd(), places.front().offset, bytes, "a base").ok()) return false;
  return sha256(bytes) == (*digests)[chunk];
}

void FetchBases::note_damage(VersionBases& bases, const ContentId& base) const {
  if (!bases.leave_out(base)) return;
  log_warning("stored bytes of the {} bytes with digest {} are damaged", base.length, to_hex(base.root));
  if (parts_.damaged) parts_.damaged(base);
}

void FetchBases::note_coded(const std::shared_ptr<VersionBases>& bases, const CodedCounts& counts) {
  if (!bases || (counts.asked == 0 && counts.failed == 0 && counts.same_bytes == 0)) return;
  bases->note(counts);
  const MutexLock lock(mutex_);
  coded_ += counts;
  last_coded_ = bases;
}

FetchBases::Counts FetchBases::counts() const {
  Counts counts;
  std::shared_ptr<VersionBases> last;
  {
    const MutexLock lock(mutex_);
    counts.all = coded_;
    last = last_coded_;
  }
  if (last) counts.last = CodedVersion{last->version(), last->base(), last->counts()};
  return counts;
}

}  // namespace weft
