#include "daemon_api/cold_wire.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "base/limits.h"
#include "base/text.h"
#include "blobs/fd_pack.h"
#include "os/sys.h"
#include "os/unix_socket.h"

namespace weft {
namespace {

constexpr std::size_t kPiecesMax = 8192;  // pieces of one answer; the mount requests the rest again

using Packs = std::vector<std::shared_ptr<const PackReader>>;

// Encoded as a row of numbers, as WirePack is.
struct WirePiece {
  std::uint64_t offset = 0, length = 0;  // range of the published file
  std::uint64_t place = 0, pack = 0;     // offset in the pack, and index of the pack in the answer
};
void fields(JsonFields& f, WirePiece& m) {
  f("offset", m.offset, limits::kVersionBytesMax)("length", m.length)("place", m.place)("pack", m.pack);
}
struct WirePack {
  PackId id = 0;
  std::uint64_t size = 0;
};
void fields(JsonFields& f, WirePack& m) {
  f("id", m.id)("size", m.size);
}
struct WireAnswer {
  std::vector<WirePiece> pieces;
  std::vector<WirePack> packs;
};
void fields(JsonFields& f, WireAnswer& m) {
  f("pieces", m.pieces, JsonFields::Form::row)("packs", m.packs, JsonFields::Form::row);
}

Error odd(std::string_view what) {
  return Error{Errc::invalid, fmt::format("the daemon's answer: {}", what)};
}

Result<Packs> packs_of(const WireAnswer& answer, std::vector<Fd> fds) {
  if (answer.packs.size() != fds.size())
    return odd(fmt::format("{} packs, {} descriptors", answer.packs.size(), fds.size()));
  Packs packs;
  for (std::size_t i = 0; i < fds.size(); ++i)
    packs.push_back(std::make_shared<FdPack>(std::move(fds[i]), answer.packs[i].size, answer.packs[i].id));
  return packs;
}

Result<Run> piece_of(const WirePiece& piece, const Packs& packs) {
  if (piece.pack >= packs.size()) return odd("a piece of no pack");
  const auto& pack = packs[piece.pack];
  if (piece.place > pack->size() || piece.length > pack->size() - piece.place)
    return odd(fmt::format("a piece of {} bytes at {} of a pack of {}", piece.length, piece.place, pack->size()));
  return Run{piece.offset, piece.length, {pack, piece.place}};
}

// Returns the first pieces, as many as one message holds with the descriptors of their packs. Adds those packs to
// `packs`.
std::vector<WirePiece> wire_pieces(const std::vector<Run>& pieces, Packs& packs) {
  std::vector<WirePiece> wire;
  for (const Run& piece : pieces) {
    const auto at = std::find(packs.begin(), packs.end(), piece.place.pack);
    const auto number = static_cast<std::uint64_t>(at - packs.begin());
    if (wire.size() == kPiecesMax || (at == packs.end() && packs.size() == kFdsAtOnceMax)) break;
    if (at == packs.end()) packs.push_back(piece.place.pack);
    wire.push_back({piece.offset, piece.length, piece.place.offset, number});
  }
  return wire;
}

}  // namespace

void fields(JsonFields& f, ColdRange& m) {
  f("version", m.version)("file", m.file, limits::kFilesPerVersionMax)("offset", m.range.offset,
                                                                       limits::kVersionBytesMax);
  f("length", m.range.length, limits::kVersionBytesMax)("ahead", m.ahead, limits::kVersionBytesMax)("all", m.all)(
      "one_tensor", m.one_tensor);
}

void fields(JsonFields& f, ColdAdvice& m) {
  std::string name(name_of(m.policy));
  f("policy", name)("bytes_per_s", m.bytes_per_s)("keeps", m.keeps);
  const auto policy = cold_policy_named(name);
  m.policy = policy.value_or(m.policy);
  if (!policy) f.refuse(fmt::format("policy: expected auto, stream or fetch, got {}", printable(name)));
}

Result<ColdAnswer> encode_cold_pieces(const std::vector<Run>& pieces) {
  WireAnswer wire;
  Packs packs;
  wire.pieces = wire_pieces(pieces, packs);
  ColdAnswer answer;
  for (const auto& pack : packs) {
    wire.packs.push_back({pack->id(), pack->size()});
    WEFT_TRY(answer.fds.emplace_back(), duplicate(pack->fd(), "a descriptor for a mount"));
  }
  answer.body = encode_fields(wire);
  return answer;
}

Result<std::vector<Run>> decode_cold_pieces(const JsonValue& body, std::vector<Fd> fds, Range range) {
  WEFT_TRY(const WireAnswer answer, decode_fields<WireAnswer>(body));
  WEFT_TRY(const Packs packs, packs_of(answer, std::move(fds)));
  std::vector<Run> pieces;
  for (const WirePiece& one : answer.pieces) {
    WEFT_TRY(Run piece, piece_of(one, packs));
    const bool touches = pieces.empty() ? piece.offset <= range.offset && range.offset < end_of(piece)
                                        : piece.offset == end_of(pieces.back());
    if (piece.length == 0 || !touches) return odd("pieces that do not cover the requested range");
    pieces.push_back(std::move(piece));
  }
  if (pieces.empty() && range.length > 0) return odd("no piece");
  return pieces;
}

}  // namespace weft
