// The messages of swarms (src/swarm/README.md) as values: a node joins the swarm of a version at a directory node, and
// wants units of its partners. Decoding checks every bound of this file, because the bytes are hostile. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "swarm/downloads.h"
#include "swarm/units.h"
#include "weft/bytes/traffic.h"
#include "weft/content.h"
#include "weft/result.h"

namespace weft {

inline constexpr std::size_t kLocationBytesMax = 64;
inline constexpr std::size_t kUnitSetBytesMax = kUnitsMax / 8;
inline constexpr std::size_t kReportMax = 64;  // units of Join::read, and of Join::unread

// True for at most kLocationBytesMax printable ASCII characters without spaces.
bool is_location(std::string_view text);

// The state of the caller's session in the swarm of a version. The answer to `fetches` is a Partners, which the
// directory node may give later; the answer to the others is an empty Partners.
struct Join {
  enum class State : std::uint8_t {
    fetches,   // it begins to fetch, or is hungry and asks for another partner
    lives,     // it is still fetching
    finished,  // it lacks no wanted unit, and still sends units
    leaves,    // it neither fetches nor sends units any more
  };
  Digest manifest;
  std::string location;  // is_location(); "" if unknown, and in all states but `fetches`
  State state = State::fetches;
  // Units that the called node has offered as the clerk of the origin (Partners::clerk): the caller has read them, or
  // has not. Each at most kReportMax units below kUnitsMax; none in the state `fetches`.
  std::vector<std::uint32_t> read = {}, unread = {};
  bool operator==(const Join&) const = default;
};

// The answer to a Join.
struct Partners {
  std::vector<std::string> nodes;  // ids of different nodes, Downloads::kPartnersMax at most
  std::string source;              // the node to ask as the source; "": the caller may ask none
  // The called node is the clerk of the origin. The caller may ask it as the source (Want::of_clerk), if there is none
  // or the source lacks units. The clerk says which unit the caller reads from the origin.
  bool clerk = false;
  bool operator==(const Partners&) const = default;
};

// Asks the called node for one unit of a version. The answer is an Offer, which may wait for kWantWaitMax.
struct Want {
  Digest manifest;
  std::vector<std::byte> has;          // UnitSet::encode() of Downloads::taken(): 1 to kUnitSetBytesMax bytes
  std::optional<std::uint32_t> first;  // the unit that a reader of the caller waits for; within `has`
  bool hungry = false;                 // the caller's partners had nothing for a while
  bool of_source = false;  // the directory has named the called node as the source. Errc::absent: it lacks units
  Traffic traffic = Traffic::ahead;
  bool of_clerk = false;  // the called node has named itself as the clerk. Its offer has no bytes
  // The caller gets the bytes of the unit by AskBytes, as differences perhaps. The offer has a token in their place.
  // False with `of_clerk`.
  bool names = false;
  bool operator==(const Want&) const = default;
};

// The start of the head of an answer to a Want.
struct Offer {
  std::optional<std::uint32_t> unit;  // below kUnitsMax; nothing: the called node has no unit for the caller
  bool operator==(const Offer&) const = default;
};
inline constexpr std::size_t kOfferBytes = 4;
// The one window of an offer to Want::names has so many bytes, of any value. The asker reads them once it has read the
// unit, and closes the window: the sender then counts the upload as one that was read.
inline constexpr std::size_t kTokenBytes = 8;

std::vector<std::byte> encode_partners(const Partners& partners);
Result<Partners> decode_partners(std::span<const std::byte> bytes);  // Errc::invalid

// The bytes of the unit follow the offer in the head, if both take at most kShortHeadBytesMax bytes. The answer then
// has no windows. Longer units are in the windows, without the offer. A clerk gives neither, and an offer to
// Want::names has a token in place of the bytes.
std::vector<std::byte> encode_offer(const Offer& offer);
struct OfferHead {
  Offer offer;
  std::span<const std::byte> bytes;  // of the unit, in the decoded head; none without a unit
};
Result<OfferHead> decode_offer(std::span<const std::byte> head);  // Errc::corrupt

}  // namespace weft
