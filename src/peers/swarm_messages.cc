#include "peers/swarm_messages.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <string_view>

#include "base/limits.h"
#include "peers/message_tables.h"

namespace weft {

static_assert(std::endian::native == std::endian::little, "offers are little-endian");

bool is_location(std::string_view text) {
  return text.size() <= kLocationBytesMax && std::ranges::all_of(text, [](char c) { return c > ' ' && c <= '~'; });
}

namespace peer_tables {
namespace {

using UnitVector = flatbuffers::Vector<std::uint32_t>;

Result<std::vector<std::uint32_t>> units_of(const UnitVector* units) {
  if (units == nullptr) return std::vector<std::uint32_t>();
  if (units->size() > kReportMax)
    return refused(fmt::format("expected at most {} reported units, got {}", kReportMax, units->size()));
  std::vector<std::uint32_t> out(units->begin(), units->end());
  if (std::ranges::any_of(out, [](std::uint32_t unit) { return unit >= kUnitsMax; })) return refused("no such unit");
  return out;
}

flatbuffers::Offset<UnitVector> packed_units(Builder& builder, const std::vector<std::uint32_t>& units) {
  return units.empty() ? 0 : builder.CreateVector(units);
}

}  // namespace

flatbuffers::Offset<wire::Join> packed(Builder& builder, const Join& join) {
  const auto digest = packed(join.manifest);
  const auto location = join.location.empty() ? 0 : builder.CreateString(join.location);
  const auto read = packed_units(builder, join.read);
  const auto unread = packed_units(builder, join.unread);
  return wire::CreateJoin(builder, &digest, location, static_cast<std::uint8_t>(join.state), read, unread);
}

Result<Join> unpacked(const wire::Join& join) {
  Join out;
  out.manifest = unpacked(*join.manifest()->bytes());
  if (join.location() != nullptr) {
    if (!is_location(join.location()->string_view())) return refused("a location of other or too many characters");
    out.location = join.location()->str();
  }
  if (join.state() > static_cast<std::uint8_t>(Join::State::leaves)) return refused("an unknown state of a session");
  out.state = static_cast<Join::State>(join.state());
  WEFT_TRY(out.read, units_of(join.read()));
  WEFT_TRY(out.unread, units_of(join.unread()));
  if (out.state == Join::State::fetches && !(out.read.empty() && out.unread.empty()))
    return refused("a node that joins reports units");
  return out;
}

flatbuffers::Offset<wire::Want> packed(Builder& builder, const Want& want) {
  const auto digest = packed(want.manifest);
  const auto has = builder.CreateVector(reinterpret_cast<const std::uint8_t*>(want.has.data()), want.has.size());
  const flatbuffers::Optional<std::uint32_t> first(want.first);
  return wire::CreateWant(builder, &digest, has, first, want.hungry, want.of_source,
                          static_cast<std::uint8_t>(want.traffic), want.of_clerk, want.names);
}

Result<Want> unpacked(const wire::Want& want) {
  Want out;
  out.manifest = unpacked(*want.manifest()->bytes());
  const auto has = std::as_bytes(std::span(want.has()->data(), want.has()->size()));
  if (has.empty() || has.size() > kUnitSetBytesMax)
    return refused(fmt::format("expected a set of 1 to {} bytes of units, got {}", kUnitSetBytesMax, has.size()));
  out.has.assign(has.begin(), has.end());
  out.first = want.first();
  if (out.first && *out.first / 8 >= has.size()) return refused(fmt::format("no unit {}", *out.first));
  out.hungry = want.hungry();
  out.of_source = want.of_source();
  WEFT_TRY(out.traffic, traffic_of(want.traffic()));
  out.of_clerk = want.of_clerk();
  out.names = want.names();
  if (out.of_clerk && out.names) return refused("a clerk is asked for names");
  return out;
}

}  // namespace peer_tables

namespace {

constexpr std::uint32_t kNoUnit = std::numeric_limits<std::uint32_t>::max();

}  // namespace

std::vector<std::byte> encode_partners(const Partners& partners) {
  peer_tables::Builder builder;
  const auto nodes = builder.CreateVectorOfStrings(partners.nodes);
  const auto source = partners.source.empty() ? 0 : builder.CreateString(partners.source);
  builder.Finish(peer_wire::CreatePartners(builder, nodes, source, partners.clerk));
  return peer_tables::bytes_of(builder);
}

Result<Partners> decode_partners(std::span<const std::byte> bytes) {
  WEFT_TRY(const auto verified, peer_tables::Verified<peer_wire::Partners>::make(bytes));
  const peer_wire::Partners& table = *verified;
  Partners out;
  WEFT_TRY(out.nodes, peer_tables::ids_of(*table.nodes(), Downloads::kPartnersMax));
  out.clerk = table.clerk();
  if (table.source() == nullptr) return out;
  if (table.source()->size() > limits::kNodeIdMax)
    return peer_tables::refused(fmt::format("a source's id of {} bytes", table.source()->size()));
  out.source = table.source()->str();
  return out;
}

std::vector<std::byte> encode_offer(const Offer& offer) {
  const std::uint32_t number = offer.unit.value_or(kNoUnit);
  const auto bytes = std::as_bytes(std::span(&number, 1));
  return {bytes.begin(), bytes.end()};
}

Result<OfferHead> decode_offer(std::span<const std::byte> head) {
  if (head.size() < kOfferBytes)
    return Error{Errc::corrupt, fmt::format("a peer's answer: an offer of {} bytes", head.size())};
  std::uint32_t number = 0;
  std::memcpy(&number, head.data(), kOfferBytes);
  const auto bytes = head.subspan(kOfferBytes);
  if (number == kNoUnit && !bytes.empty())
    return Error{Errc::corrupt, fmt::format("a peer's answer: {} bytes of no unit", bytes.size())};
  if (number == kNoUnit) return OfferHead{};
  if (number >= kUnitsMax) return Error{Errc::corrupt, fmt::format("a peer's answer: no unit {}", number)};
  return OfferHead{{number}, bytes};
}

}  // namespace weft
