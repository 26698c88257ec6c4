#include "net/session/session.h"

#include <fmt/core.h>

#include <limits>

namespace weft::net {
namespace {

constexpr std::uint64_t kCounterEnd = std::numeric_limits<std::uint64_t>::max();  // Noise keeps this nonce for Rekey

}  // namespace

DirectionKeys DirectionKeys::next() const {
  DirectionKeys rolled(cipher_.rekeyed());
  rolled.epoch_ = static_cast<std::uint16_t>(epoch_ + 1);
  return rolled;
}

Result<std::vector<std::byte>> Session::seal(FrameKind kind, std::span<const std::byte> payload) {
  if (payload.size() > kPayloadBytesMax)
    return Error{Errc::invalid,
                 fmt::format("a message: expected at most {} bytes, got {}", kPayloadBytesMax, payload.size())};
  if (sent_ > 0 && sent_ % kFramesPerEpoch == 0) {
    if (sending_.epoch() == std::numeric_limits<std::uint16_t>::max())
      return Error{Errc::unsupported, "a session: its keys are used up"};
    sending_ = sending_.next();
  }
  std::vector<std::byte> frame = make_frame({kind, sending_.epoch(), ends_.theirs, sent_}, payload);
  const std::span<std::byte> all(frame);
  sending_.cipher().encrypt(sent_, all.first(kFrameHeaderBytes), all.subspan(kFrameHeaderBytes, payload.size()),
                            all.last<kFrameTagBytes>());
  ++sent_;
  return frame;
}

// Tries the next epoch's key, and keeps it only if the tag is right. So only the peer can make the keys roll.
Result<std::vector<std::byte>> Session::open(const FrameView& frame) {
  const bool rolls =
      frame.header.epoch == static_cast<std::uint16_t>(receiving_.epoch() + 1) && frame.header.epoch != 0;
  if (frame.header.session != ends_.ours || (!rolls && frame.header.epoch != receiving_.epoch()))
    return Error{Errc::permission, "a frame: of another session or epoch"};
  const DirectionKeys keys = rolls ? receiving_.next() : receiving_;
  auto payload = keys.cipher().decrypt(frame.header.counter, frame.authenticated.first(kFrameHeaderBytes),
                                       frame.payload, frame.tag.first<kFrameTagBytes>());
  if (!payload.ok()) return Error{Errc::permission, "a frame: its tag is wrong"};
  if (frame.header.counter < next_ || frame.header.counter == kCounterEnd)
    return Error{Errc::permission, "a frame: it came before"};
  receiving_ = keys;
  next_ = frame.header.counter + 1;
  return payload;
}

}  // namespace weft::net
