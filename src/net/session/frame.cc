#include "net/session/frame.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

namespace weft::net {
namespace {

constexpr std::array<std::byte, 4> kMagic{std::byte{'W'}, std::byte{'F'}, std::byte{'T'}, std::byte{'1'}};
constexpr std::size_t kKindAt = 4;
constexpr std::size_t kZeroAt = 5;
constexpr std::size_t kEpochAt = 6;
constexpr std::size_t kSessionAt = 8;
constexpr std::size_t kCounterAt = 16;

template <class Number>
void put(std::byte* at, Number value) {
  for (std::size_t i = 0; i < sizeof value; ++i) at[i] = static_cast<std::byte>(std::uint64_t{value} >> (8 * i));
}

template <class Number>
Number get(const std::byte* at) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof(Number); ++i) value |= std::to_integer<std::uint64_t>(at[i]) << (8 * i);
  return static_cast<Number>(value);
}

bool known(std::uint8_t kind) {
  return kind >= static_cast<std::uint8_t>(FrameKind::hello) && kind <= static_cast<std::uint8_t>(FrameKind::close);
}

}  // namespace

std::vector<std::byte> FrameView::bytes() const {
  std::vector<std::byte> frame(authenticated.begin(), authenticated.end());
  frame.insert(frame.end(), tag.begin(), tag.end());
  return frame;
}

std::vector<std::byte> make_frame(const FrameHeader& header, std::span<const std::byte> payload) {
  std::vector<std::byte> frame(kFrameHeaderBytes + payload.size() + kFrameTagBytes);
  std::copy(kMagic.begin(), kMagic.end(), frame.begin());
  put(&frame[kKindAt], static_cast<std::uint8_t>(header.kind));
  put(&frame[kEpochAt], header.epoch);
  put(&frame[kSessionAt], header.session);
  put(&frame[kCounterAt], header.counter);
  if (!payload.empty()) std::memcpy(&frame[kFrameHeaderBytes], payload.data(), payload.size());
  return frame;
}

std::span<std::byte> tag_of(std::span<std::byte> frame) {
  return frame.last(kFrameTagBytes);
}

Result<FrameView> parse_frame(std::span<const std::byte> bytes) {
  if (bytes.size() < kFrameHeaderBytes + kFrameTagBytes || bytes.size() > kMessageBytesMax)
    return Error{Errc::invalid, fmt::format("a frame: expected {} to {} bytes, got {}",
                                            kFrameHeaderBytes + kFrameTagBytes, kMessageBytesMax, bytes.size())};
  if (!std::equal(kMagic.begin(), kMagic.end(), bytes.begin()))
    return Error{Errc::invalid, "a frame: expected WFT1 at its beginning"};
  const auto kind = get<std::uint8_t>(&bytes[kKindAt]);
  if (!known(kind) || bytes[kZeroAt] != std::byte{0})
    return Error{Errc::invalid, fmt::format("a frame: unknown kind {}", kind)};
  FrameView view;
  view.header.kind = static_cast<FrameKind>(kind);
  view.header.epoch = get<std::uint16_t>(&bytes[kEpochAt]);
  view.header.session = get<std::uint64_t>(&bytes[kSessionAt]);
  view.header.counter = get<std::uint64_t>(&bytes[kCounterAt]);
  view.authenticated = bytes.first(bytes.size() - kFrameTagBytes);
  view.payload = view.authenticated.subspan(kFrameHeaderBytes);
  view.tag = bytes.last(kFrameTagBytes);
  return view;
}

}  // namespace weft::net
