#include "peers/source.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "base/limits.h"
#include "base/sha256.h"
#include "peers/read.h"

namespace weft {
namespace {

constexpr auto kExpectMax = std::chrono::seconds(1);  // wait for directory nodes

}  // namespace

PeerSource::PeerSource(Exchange& exchange, PeerView& view, PeerLinks& links, PeerNews& news, PeerCoding& coding,
                       SwarmServer* swarms, std::shared_ptr<PaceGate> gate)
    : exchange_(exchange),
      blocks_(std::make_shared<ReadBlocks>(exchange)),
      view_(view),
      links_(links),
      news_(news),
      coding_(coding),
      swarms_(swarms),
      gate_(gate ? std::move(gate) : std::make_shared<PaceGate>()),
      scene_{view, links, [&news](const Digest& manifest, Deadline deadline) { news.ask(manifest, deadline); }} {}

Result<std::unique_ptr<Answer>> PeerSource::call(const PeerSearch::Try& to, const PeerRequest& request,
                                                 const OnSign& on_sign) {
  const auto address = links_.address(to.peer.node);
  if (!address) return Error{Errc::unreachable, fmt::format("peer {}: is no member any more", to.peer.node)};
  return exchange_.call(*address, encode_request(request), deadline_in(to.patience), on_sign);
}

Result<std::vector<std::byte>> PeerSource::ask(PeerSearch& search, const PeerSearch::Try& to,
                                               const PeerRequest& request) {
  const auto on_sign = [&] {
    links_.moved(to.peer.number);
    search.came();
    return true;
  };
  WEFT_TRY(const auto answer, call(to, request, on_sign));
  return answer_bytes(exchange_, *answer, kSourceReadMax, {links_.pace(to.peer.number), to.patience, on_sign});
}

Result<std::vector<std::byte>> PeerSource::manifest(const Digest& digest, Deadline deadline) {
  std::vector<std::byte> bytes;
  PeerSearch search(scene_, digest, PeerSearch::Wanted::manifest, deadline);
  const auto read_all = [&](const PeerSearch::Try& from) -> Status {
    for (bytes.clear(); bytes.size() <= limits::kManifestMax;) {
      WEFT_TRY(const auto part, ask(search, from, AskManifest{digest, bytes.size()}));
      bytes.insert(bytes.end(), part.begin(), part.end());
      if (part.size() < kSourceReadMax) return {};
    }
    return Error{Errc::corrupt, "peer: a manifest without an end"};
  };
  WEFT_CHECK(search.run(nullptr, read_all));
  return bytes;
}

Result<std::vector<Digest>> PeerSource::chunks(const Digest& manifest, const ContentId& id, Deadline deadline) {
  const ChunkRun whole{id, 0, chunk_count(id.length)};
  std::vector<Digest> digests;
  PeerSearch search(scene_, manifest, PeerSearch::Wanted::digests, deadline);
  const auto read_all = [&](const PeerSearch::Try& from) -> Status {
    for (digests.clear(); digests.size() < whole.count;) {
      const std::uint64_t count = std::min(kDigestsAtOnceMax, whole.count - digests.size());
      WEFT_TRY(const auto bytes, ask(search, from, AskChunks{{id, digests.size(), count}}));
      WEFT_TRY(const auto part, decode_digests(bytes));
      if (part.size() != count)
        return Error{Errc::corrupt, fmt::format("peer: expected {} digests, got {}", count, part.size())};
      digests.insert(digests.end(), part.begin(), part.end());
    }
    return {};
  };
  WEFT_CHECK(search.run(&whole, read_all));
  return digests;
}

void PeerSource::expect(const VersionRow& version, std::span<const ContentId> blobs) {
  view_.expect(version, blobs);
  news_.expect(version.manifest);
  // The publisher is known without a directory. If it is away, a directory may name other holders.
  if (links_.readiness(view_.candidates(version.manifest, nullptr)) == Readiness::lacking)
    news_.ask(version.manifest, deadline_in(kExpectMax));
}

void PeerSource::arrived(const Digest& manifest, std::span<const ChunkRun> runs) {
  news_.arrived(manifest);
  if (swarms_ != nullptr) swarms_->arrived(manifest, runs);
}

void PeerSource::evicted() {
  news_.survey_again();
  if (swarms_ != nullptr) swarms_->evicted();
}

Readiness PeerSource::readiness(const Digest& manifest, std::span<const ChunkRun> runs) {
  const ChunkRun* run = runs.empty() ? nullptr : &runs.front();
  return links_.readiness(view_.candidates(manifest, run));
}

void PeerSource::miscoded(std::uint32_t giver) {
  links_.plain_only(giver);
}

bool PeerSource::refuted(std::uint32_t giver) {
  links_.refuted(giver);
  return true;
}

}  // namespace weft
