#include "peers/swarm/unit_offer.h"

#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "peers/pack_windows.h"
#include "peers/swarm_messages.h"

namespace weft {

PeerReply offer_of_nothing() {
  PeerReply reply;
  reply.head = encode_offer({});
  return reply;
}

Result<PeerReply> offer_of(const VersionUnits& version, std::uint32_t unit, LocalBytes& bytes) {
  const std::vector<ChunkRun> runs = version.runs(unit);
  WEFT_TRY(auto places, here_or_error(bytes, runs));
  const std::vector<Run> segments = segments_of(runs, std::move(places));
  PeerReply reply;
  reply.head = encode_offer({unit});
  if (reply.head.size() + size_of(segments) <= kShortHeadBytesMax) {
    WEFT_TRY(const auto copy, copy_of(segments));
    reply.head.insert(reply.head.end(), copy.begin(), copy.end());
    return reply;
  }
  WEFT_TRY(reply.windows, windows_on(segments));
  return reply;
}

Result<PeerReply> offer_with_token(const VersionUnits& version, std::uint32_t unit, LocalBytes& bytes) {
  WEFT_CHECK(here_or_error(bytes, version.runs(unit)));
  constexpr std::array<std::byte, kTokenBytes> kToken{};
  WEFT_TRY(auto window, WindowMemory::of_bytes(kToken));
  PeerReply reply;
  reply.head = encode_offer({unit});
  reply.windows.push_back(std::move(window));
  return reply;
}

}  // namespace weft
