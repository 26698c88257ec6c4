#include "net/session.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <limits>

namespace weft::net {
namespace {

FrameTag tag_under(const Secret& key, std::span<const std::byte> authenticated) {
  const Bytes32 hash = keyed_hash(key, "weft frame", std::span(&authenticated, 1));
  FrameTag tag{};
  std::copy_n(hash.begin(), tag.size(), tag.begin());
  return tag;
}

}  // namespace

DirectionKeys DirectionKeys::next() const {
  DirectionKeys rolled(derive(key_, "weft next epoch", {}));
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
  std::vector<std::byte> frame = make_frame({kind, sending_.epoch(), ends_.theirs, ++sent_}, payload);
  const std::span<const std::byte> all(frame);
  const FrameTag tag = tag_under(sending_.key(), all.first(all.size() - kFrameTagBytes));
  std::copy(tag.begin(), tag.end(), tag_of(frame).begin());
  return frame;
}

// The next epoch's key is tried, and kept only when the tag is right: nobody else can make the keys roll.
Result<std::span<const std::byte>> Session::open(const FrameView& frame) {
  const bool rolls =
      frame.header.epoch == static_cast<std::uint16_t>(receiving_.epoch() + 1) && frame.header.epoch != 0;
  if (frame.header.session != ends_.ours || (!rolls && frame.header.epoch != receiving_.epoch()))
    return Error{Errc::permission, "a frame: of another session or epoch"};
  const DirectionKeys keys = rolls ? receiving_.next() : receiving_;
  if (!equal_in_constant_time(tag_under(keys.key(), frame.authenticated), frame.tag))
    return Error{Errc::permission, "a frame: its tag is wrong"};
  if (frame.header.counter <= received_) return Error{Errc::permission, "a frame: it came before"};
  receiving_ = keys;
  received_ = frame.header.counter;
  return frame.payload;
}

}  // namespace weft::net
