#include "fetch/verified_source.h"

#include <algorithm>
#include <system_error>

#include <fmt/core.h>

#include "base/sha256.h"
#include "weft/bytes/swarm.h"

namespace weft {
namespace {

constexpr int kTriesMax = 3;                         // if another giver may have the right bytes
constexpr std::size_t kProofDigestsMax = 1U << 18U;  // 8 MiB, for 256 GiB of blobs

}  // namespace

std::vector<Digest> digests_of(std::span<const ChunkRun> runs, std::span<const std::byte> bytes) {
  std::vector<std::span<const std::byte>> chunks;
  for (const RunChunk& chunk : chunks_of(runs)) chunks.push_back(bytes.subspan(chunk.at, chunk.length));
  std::vector<Digest> digests(chunks.size());
  sha256_each(chunks, digests);
  return digests;
}

Error VerifiedSource::wrong(const ContentId& id, std::string_view what) const {
  return Error{Errc::corrupt,
               fmt::format("{}: {} of the {} bytes with digest {}", name(), what, id.length, to_hex(id.root))};
}

Result<std::vector<std::byte>> VerifiedSource::manifest(const Digest& digest, Deadline deadline) {
  WEFT_TRY(auto bytes, source_->manifest(digest, deadline));
  if (sha256(bytes) == digest) return bytes;
  return Error{Errc::corrupt, fmt::format("{}: other bytes than those of manifest {}", name(), to_hex(digest))};
}

VerifiedSource::Proof VerifiedSource::known_proof(const ContentId& id) {
  const MutexLock lock(mutex_);
  const auto known = proofs_.find(id);
  return known == proofs_.end() ? nullptr : known->second;
}

// Returns the chunk digests of a blob. If several readers need them, one requests them.
Result<VerifiedSource::Proof> VerifiedSource::proof(const Digest& manifest, const ContentId& id, Deadline deadline) {
  {
    UniqueLock lock(mutex_);
    const auto nobody_asks = [&]() WEFT_REQUIRES(mutex_) { return !asked_.contains(id); };
    if (!answered_.wait_until(lock, deadline, nobody_asks))
      return Error{Errc::timed_out, fmt::format("{}: no chunk digests in time", name())};
    if (const auto known = proofs_.find(id); known != proofs_.end()) return known->second;
    asked_.insert(id);
  }
  auto proof = ask_for_proof(manifest, id, deadline);
  {
    const MutexLock lock(mutex_);
    asked_.erase(id);
  }
  answered_.notify_all();
  return proof;
}

Result<VerifiedSource::Proof> VerifiedSource::ask_for_proof(const Digest& manifest, const ContentId& id,
                                                            Deadline deadline) {
  WEFT_TRY(auto chunks, source_->chunks(manifest, id, deadline));
  if (chunks.size() != chunk_count(id.length) || tree_root(id.length, chunks) != id.root)
    return wrong(id, "forged chunk digests");
  auto made = std::make_shared<const std::vector<Digest>>(std::move(chunks));
  const MutexLock lock(mutex_);
  if (proof_digests_ + made->size() > kProofDigestsMax) {
    proofs_.clear();
    proof_digests_ = 0;
  }
  if (proofs_.emplace(id, made).second) proof_digests_ += made->size();
  return made;
}

// Returns the first chunk with a wrong digest; nothing if all chunks are right.
Result<std::optional<VerifiedSource::Wrong>> VerifiedSource::check(const Digest& manifest, const ChunkRun& run,
                                                                   std::span<const Digest> digests, Deadline deadline) {
  if (chunk_count(run.id.length) == 1) {
    if (tree_root(run.id.length, digests) == run.id.root) return std::optional<Wrong>();
    return std::optional(Wrong{0, wrong(run.id, "other bytes in place")});
  }
  WEFT_TRY(const Proof proven, proof(manifest, run.id, deadline));
  const auto expected = std::span(*proven).subspan(run.first, run.count);
  const auto differs = std::mismatch(digests.begin(), digests.end(), expected.begin()).first;
  if (differs == digests.end()) return std::optional<Wrong>();
  return std::optional(
      Wrong{static_cast<std::size_t>(differs - digests.begin()), wrong(run.id, "other bytes in place")});
}

// Requests chunk digests in parallel with the bytes, because behind them they would wait for all bytes in flight. A
// failed request is repeated by the reader that needs it.
std::future<void> VerifiedSource::begin_proofs(const Digest& manifest, std::span<const ChunkRun> runs,
                                               Deadline deadline) {
  std::vector<ContentId> unproven;
  for (const ChunkRun& run : runs)
    if (chunk_count(run.id.length) > 1 && (unproven.empty() || unproven.back() != run.id) && !known_proof(run.id))
      unproven.push_back(run.id);
  if (unproven.empty()) return {};
  try {
    return std::async(std::launch::async, [this, manifest, deadline, unproven = std::move(unproven)] {
      for (const ContentId& id : unproven)
        if (!proof(manifest, id, deadline).ok()) return;
    });
  } catch (const std::system_error&) {
    return {};  // no thread left; check() requests the proofs
  }
}

// Blames the giver of a wrong chunk, or its base. The chunk is number `at` of all, and `number` of the blob of `run`.
// True if another read may return the right bytes.
bool VerifiedSource::blame(const SourceBytes& got, std::size_t at, std::size_t run, std::uint64_t number,
                           ReadAid& aid) {
  const bool coded = std::ranges::binary_search(got.coded, at);
  if (aid.offered && !coded) aid.offered->refuted();
  if (at >= got.givers.size()) return false;
  if (got.givers[at] == kSeveralGivers) {  // the next try tells the wrong giver
    aid.kept = {};
    return aid.whole_chunks = true;
  }
  if (!coded) {
    const bool has_others = source_->refuted(got.givers[at]);
    return has_others && !aid.offered;
  }
  ++aid.coded.failed;
  if (run < aid.bases.size() && aid.is_damaged && aid.is_damaged(aid.bases[run], number))
    aid.bases.clear();
  else
    source_->miscoded(got.givers[at]);
  return true;
}

// Reads and verifies once. The full patience starts again when the bytes have arrived, for the proofs. Sets `again` if
// another try may succeed.
Result<VerifiedBytes> VerifiedSource::read_once(const Digest& manifest, std::span<const ChunkRun> runs,
                                                Deadline::duration patience, ReadAid& aid, bool& again) {
  Deadline deadline = Deadline::clock::now() + patience;
  std::uint64_t wanted = 0;
  for (const ChunkRun& run : runs) wanted += run.length();
  const std::future<void> proofs = begin_proofs(manifest, runs, deadline);  // its destructor waits for them
  WEFT_TRY(SourceBytes got, source_->read(manifest, runs, deadline, aid));
  if (aid.came) aid.came();
  deadline = Deadline::clock::now() + patience;
  if (got.size != wanted)
    return Error{Errc::corrupt, fmt::format("{}: expected {} bytes, got {}", name(), wanted, got.size)};
  std::vector<Digest> digests = digests_of(runs, got.bytes());
  std::size_t chunk = 0;
  for (const ChunkRun& run : runs) {
    WEFT_TRY(const auto wrong, check(manifest, run, std::span(digests).subspan(chunk, run.count), deadline));
    if (wrong) {
      again =
          blame(got, chunk + wrong->chunk, static_cast<std::size_t>(&run - runs.data()), run.first + wrong->chunk, aid);
      return wrong->error;
    }
    chunk += run.count;
  }
  if (got.proved) got.proved();
  return VerifiedBytes{std::move(got), std::move(digests)};
}

Result<VerifiedBytes> VerifiedSource::read(const Digest& manifest, std::span<const ChunkRun> runs, Deadline deadline,
                                           ReadAid& aid) {
  for (const ChunkRun& run : runs)
    if (run.count == 0 || run.id.length == 0 || run.first >= chunk_count(run.id.length) ||
        run.count > chunk_count(run.id.length) - run.first)
      return Error{Errc::internal, fmt::format("chunks {} to {} of a blob of {} bytes", run.first,
                                               run.first + run.count, run.id.length)};
  const auto patience = deadline - Deadline::clock::now();
  for (int tries = 1;; ++tries) {
    bool again = false;
    auto got = read_once(manifest, runs, patience, aid, again);
    if (got.ok() || !again || tries == kTriesMax) return got;
  }
}

}  // namespace weft
