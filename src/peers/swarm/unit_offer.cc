#include "peers/swarm/unit_offer.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/core.h>

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
  WEFT_TRY(auto places, bytes.here(runs));
  if (!std::ranges::all_of(places, [](const OpenPlace& place) { return place.pack != nullptr; }))
    return Error{Errc::not_found, fmt::format("unit {} is not here any more", unit)};
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

}  // namespace weft
