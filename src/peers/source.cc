#include "peers/source.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "base/limits.h"
#include "base/sha256.h"
#include "peers/read.h"
#include "peers/source_impl.h"

namespace weft {
namespace {

using Clock = PeerLinks::Clock;
using std::chrono::milliseconds;

}  // namespace

Result<std::vector<std::byte>> PeerSource::ask(const std::string& node, const PeerRequest& request, Deadline deadline) {
  const auto address = links_.address(node);
  if (!address) return Error{Errc::unreachable, fmt::format("peer {}: is no member any more", node)};
  WEFT_TRY(Answer answer, exchange_.call(*address, encode_request(request), deadline));
  return answer_bytes(exchange_, answer, kSourceReadMax, {time_left(deadline), {}});
}

// Where all that are known were silent or wrong a moment ago, somebody else may have it: asked once.
std::vector<PeerCandidate> PeerSource::candidates(const Digest& manifest, const ChunkRun* run, bool& asked) {
  auto known = view_.candidates(manifest, run);
  if (asked || links_.readiness(known) != Readiness::lacking) return known;
  asked = true;
  news_.ask(manifest);
  return view_.candidates(manifest, run);
}

// Who has it need not be known to any directory: a version may have bytes of another one that nobody reads, and whose
// manifest is not here. Who lacks it says so at once.
std::vector<PeerCandidate> PeerSource::everybody(const Digest& manifest, const ChunkRun* run) {
  const auto nodes = links_.nodes();
  return view_.others(manifest, run, nodes);
}

// One after the other, each with its share of the time that is left; those of whom nothing is known once.
template <class T>
Result<T> PeerSource::from_any(const Digest& manifest, const ChunkRun* run, Deadline deadline,
                               const std::function<Result<T>(const std::string& node, Deadline deadline)>& ask) {
  Error last = nobody_has(fmt::format("manifest {}", to_hex(manifest)));
  std::vector<std::uint32_t> tried;
  bool asked = false;
  bool offers = false;
  bool offered = false;
  const Deadline end = Clock::now() + kPeersBusyMax;
  for (std::size_t tries = 0; tries < kPeerTriesMax;) {
    auto choice = links_.take(candidates(manifest, run, asked), tried, PeerLinks::Size::question);
    if (!choice && !offers) {  // somebody else may have it by now
      news_.ask(manifest);
      choice = links_.take(view_.candidates(manifest, run), tried, PeerLinks::Size::question);
      if (!choice) offers = !std::exchange(offered, true);
    }
    if (!choice && offers) choice = links_.take(everybody(manifest, run), tried, PeerLinks::Size::question);
    if (!choice) {  // or the same may answer now
      ++tries;
      offers = false;
      tried.clear();
      choice = links_.take(view_.candidates(manifest, run), tried, PeerLinks::Size::question);
    }
    if (!choice) break;
    const auto share = std::max(milliseconds(500), time_left(deadline) / (tries + 1 < kPeerTriesMax ? 2 : 1));
    const auto begin = Clock::now();
    auto got = ask(choice->node, begin + share);
    links_.done(choice->number, 0, Clock::now() - begin, got.ok() ? nullptr : &got.error());
    if (got.ok() && offers) view_.gave(manifest, choice->node);
    if (got.ok()) return got;
    last = std::move(got).error();
    if (last.code == Errc::timed_out && begin < end && links_.moved_since(choice->number, begin)) continue;
    if (last.code != Errc::not_found) ++tries;
    if (run == nullptr && last.code == Errc::not_found) view_.lacks(manifest, run, choice->node);
    tried.push_back(choice->number);
  }
  return last;
}

Result<std::vector<std::byte>> PeerSource::manifest(const Digest& digest, Deadline deadline) {
  return from_any<std::vector<std::byte>>(
      digest, nullptr, deadline, [&](const std::string& node, Deadline share) -> Result<std::vector<std::byte>> {
        std::vector<std::byte> bytes;
        for (;;) {
          WEFT_TRY(const auto part, ask(node, AskManifest{digest, bytes.size()}, share));
          bytes.insert(bytes.end(), part.begin(), part.end());
          if (part.size() < kSourceReadMax) return bytes;
          if (bytes.size() > limits::kManifestMax) return Error{Errc::corrupt, "peer: a manifest without an end"};
        }
      });
}

Result<std::vector<Digest>> PeerSource::chunks(const Digest& manifest, const ContentId& id, Deadline deadline) {
  const ChunkRun whole{id, 0, chunk_count(id.length)};
  return from_any<std::vector<Digest>>(
      manifest, &whole, deadline, [&](const std::string& node, Deadline share) -> Result<std::vector<Digest>> {
        std::vector<Digest> digests;
        while (digests.size() < whole.count) {
          const std::uint64_t count = std::min(kDigestsAtOnceMax, whole.count - digests.size());
          WEFT_TRY(const auto bytes, ask(node, AskChunks{{id, digests.size(), count}}, share));
          WEFT_TRY(const auto part, decode_digests(bytes));
          if (part.size() != count)
            return Error{Errc::corrupt, fmt::format("peer: expected {} digests, got {}", count, part.size())};
          digests.insert(digests.end(), part.begin(), part.end());
        }
        return digests;
      });
}

void PeerSource::expect(const VersionRow& version, const Manifest* manifest, std::span<const ContentId> blobs) {
  view_.expect(version, manifest, blobs);
  news_.expect(version.manifest);
  // Who published it is asked without delay; where nobody is known, somebody may have it all the same.
  if (links_.readiness(view_.candidates(version.manifest, nullptr)) == Readiness::lacking) news_.ask(version.manifest);
}

void PeerSource::arrived(const Digest& manifest, std::span<const ChunkRun> runs) {
  news_.arrived(manifest, runs);
}

Readiness PeerSource::readiness(const Digest& manifest, std::span<const ChunkRun> runs) {
  const ChunkRun* run = runs.empty() ? nullptr : &runs.front();
  const Readiness readiness = links_.readiness(view_.candidates(manifest, run));
  return readiness == Readiness::dear && run != nullptr && view_.yielded(*run) ? Readiness::busy : readiness;
}

std::size_t PeerSource::givers(const Digest& manifest, const ChunkRun& run) {
  return view_.candidates(manifest, &run).size();
}

bool PeerSource::refuted(std::uint32_t giver) {
  links_.refuted(giver);
  return true;
}

}  // namespace weft
