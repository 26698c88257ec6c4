#include "peers/swarm/unit_offer.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "peers/pack_windows.h"
#include "peers/swarm_messages.h"

namespace weft {
namespace {

// Returns the places of the runs of a unit. Errc::not_found: some are not local.
Result<std::vector<OpenPlace>> places_of(std::span<const ChunkRun> runs, std::uint32_t unit, LocalBytes& bytes) {
  WEFT_TRY(auto places, bytes.here(runs));
  if (std::ranges::all_of(places, [](const OpenPlace& place) { return place.pack != nullptr; })) return places;
  return Error{Errc::not_found, fmt::format("unit {} is not here any more", unit)};
}

}  // namespace

PeerReply offer_of_nothing() {
  PeerReply reply;
  reply.head = encode_offer({});
  return reply;
}

Result<PeerReply> offer_of(const VersionUnits& version, std::uint32_t unit, LocalBytes& bytes) {
  const std::vector<ChunkRun> runs = version.runs(unit);
  WEFT_TRY(auto places, places_of(runs, unit, bytes));
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
  WEFT_CHECK(places_of(version.runs(unit), unit, bytes));
  constexpr std::array<std::byte, kTokenBytes> kToken{};
  WEFT_TRY(auto window, WindowMemory::of_bytes(kToken));
  PeerReply reply;
  reply.head = encode_offer({unit});
  reply.windows.push_back(std::move(window));
  return reply;
}

}  // namespace weft
