#include "peers/offered_read.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "peers/read.h"
#include "peers/swarm_messages.h"

namespace weft {
namespace {

constexpr std::chrono::milliseconds kTokenPatience = kSilenceMax / 10;  // the bytes are here already

// Has a turn of a peer while it lives.
struct TurnHolder {
  TurnHolder(PeerLinks& links, std::uint32_t number) : turn(links.turn(number)) {}
  PeerLinks::Turn turn;
};

std::uint64_t asked_bytes(std::span<const ChunkRun> runs) {
  std::uint64_t bytes = 0;
  for (const ChunkRun& run : runs) bytes += run.length();
  return bytes;
}

// Returns the offset of the runs in the bytes of the unit; nothing if they are not consecutive chunks of it.
std::optional<std::uint64_t> offset_in(std::span<const ChunkRun> unit, std::span<const ChunkRun> runs) {
  const std::vector<RunChunk> all = chunks_of(unit);
  const std::vector<RunChunk> some = chunks_of(runs);
  const auto is_same = [&](const RunChunk& one, const RunChunk& other) {
    return unit[one.run].id == runs[other.run].id && one.chunk == other.chunk;
  };
  const auto found = std::search(all.begin(), all.end(), some.begin(), some.end(), is_same);
  if (some.empty() || found == all.end()) return {};
  return found->at;
}

// True if the last chunk of the runs is that of the unit.
bool end_with(std::span<const ChunkRun> unit, std::span<const ChunkRun> runs) {
  const auto end = [](const ChunkRun& run) { return run.first + run.count; };
  return runs.back().id == unit.back().id && end(runs.back()) == end(unit.back());
}

Status check_place(const PeerOffer& offer, const OfferPlace& place) {
  const std::uint64_t expected = asked_bytes(offer.runs());
  std::uint64_t left = expected - std::min<std::uint64_t>(expected, place.head.size());
  bool is_right = place.head.size() <= expected;
  for (std::size_t window = 0; window < place.answer->windows(); ++window) {
    is_right = is_right && place.answer->length(window) <= left;
    left -= std::min(left, place.answer->length(window));
  }
  if (is_right && left == 0) return {};
  return Error{Errc::corrupt,
               fmt::format("peer {}: other bytes than the {} of the offered unit", place.node, expected)};
}

// Reads the bytes of the unit from `offset` on. Sets PeerTarget::held.
Status read_at(const OfferScene& scene, const OfferPlace& place, std::uint64_t offset, PeerTarget& whole,
               const PeerPatience& patience) {
  const std::size_t in_head = std::min(whole.memory.size(), place.head.size() - std::min(offset, place.head.size()));
  if (in_head > 0) std::memcpy(whole.memory.data(), place.head.data() + offset, in_head);
  if (in_head == whole.memory.size()) return {};
  PeerTarget rest{whole.memory.subspan(in_head), std::move(whole.landing), in_head};
  const std::uint64_t from = offset - std::min(offset, place.head.size());
  Status read = read_windows(scene.exchange, *place.answer, from, rest, patience);
  whole.held = rest.held;
  return read;
}

}  // namespace

Result<SourceBytes> read_offered(const OfferScene& scene, std::span<const ChunkRun> runs, Deadline deadline,
                                 ReadAid& aid) {
  const auto offer = std::dynamic_pointer_cast<PeerOffer>(aid.offered);
  const auto found = offer ? offset_in(offer->runs(), runs) : std::nullopt;
  const std::uint64_t size = asked_bytes(runs);
  if (!found || size > kSourceReadMax) return Error{Errc::internal, "a read of other chunks than an offered unit has"};
  const std::uint64_t offset = *found;
  if (aid.is_wanted && !aid.is_wanted()) return Error{Errc::cancelled, "peers: the bytes are no longer wanted"};
  const OfferPlace place = offer->place();
  if (!place.answer) return Error{Errc::unreachable, fmt::format("peer {}: the offer is over", place.node)};
  WEFT_CHECK(check_place(*offer, place));

  const std::uint32_t number = scene.links.number_of(place.node);
  const auto on_sign = [&] {
    scene.links.moved(number);
    return !aid.is_wanted || aid.is_wanted();
  };
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Deadline::clock::now());
  const ReadBlocks::Block block = scene.blocks.take(size);
  PaceGate::Read paced(scene.gate, aid.traffic, PaceEnd::peer, aid.is_waited_for);
  std::optional<TurnHolder> turn;  // a read that is held back would keep it from others
  if (!paced.is_held()) turn.emplace(scene.links, number);
  const auto begun = PeerLinks::Clock::now();
  PeerTarget target{{block.memory.get(), size}, block.landing};
  const Status read =
      read_at(scene, place, offset, target,
              {scene.links.pace(number), std::min(left, kOfferSilenceMax), on_sign, aid.is_wanted, &paced});
  aid.held += target.held;
  WEFT_CHECK(read);
  if (place.answer->windows() > 0 && target.held.count() == 0)
    scene.links.wire_moved(number, size, PeerLinks::Clock::now() - begun);
  if (offset + size == asked_bytes(offer->runs())) offer->close();
  return SourceBytes{block.memory, size, std::vector<std::uint32_t>(chunks_of(runs).size(), number)};
}

// A chunk may have come by another way, so each read counts: the last one need not have the unit's last chunk.
void read_token(const OfferScene& scene, PeerOffer& offer, std::span<const ChunkRun> runs) {
  const OfferPlace place = offer.place();
  if (!place.answer) return;
  std::array<std::byte, kTokenBytes> token{};
  PeerTarget target{token, nullptr};
  ReadPace pace;  // a token must not change the rate of the node
  static_cast<void>(read_windows(scene.exchange, *place.answer, 0, target, {pace, kTokenPatience, {}}));
  if (end_with(offer.runs(), runs)) offer.close();
}

}  // namespace weft
