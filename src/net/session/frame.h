// The envelope of every message between daemons, all numbers little-endian:
//   magic "WFT1" · kind u8 · zero u8 · epoch u16 · session u64 · counter u64 · payload · tag (16 bytes)
// In a session, confirm included, the payload is encrypted with the sender's key and the counter as nonce
// (ChaCha20-Poly1305, RFC 8439), and `tag` authenticates all bytes before it. The payloads of hello and welcome are
// plain, and their tags end Noise messages (handshake.h). A frame fits into one message of the transport. Pure: bytes
// in, views out. Every byte is hostile.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "weft/cluster/transport.h"
#include "weft/result.h"

namespace weft::net {

inline constexpr std::size_t kFrameHeaderBytes = 24;
inline constexpr std::size_t kFrameTagBytes = 16;
inline constexpr std::size_t kPayloadBytesMax = kMessageBytesMax - kFrameHeaderBytes - kFrameTagBytes;

// On the wire: never renumber.
enum class FrameKind : std::uint8_t { hello = 1, welcome = 2, confirm = 3, message = 4, close = 5 };

struct FrameHeader {
  FrameKind kind = FrameKind::message;
  std::uint16_t epoch = 0;    // of the session's keys
  std::uint64_t session = 0;  // the receiver's number of the session; 0 in a hello
  std::uint64_t counter = 0;  // grows with each frame of a direction; 0 in hello, welcome and confirm
};

using FrameTag = std::array<std::byte, kFrameTagBytes>;

struct FrameView {
  FrameHeader header;
  std::span<const std::byte> payload;        // as received; encrypted, in a session
  std::span<const std::byte> authenticated;  // header and payload
  std::span<const std::byte> tag;

  std::vector<std::byte> bytes() const;  // a copy of the whole frame
};

// Returns a frame with a tag of zeros. `payload` has at most kPayloadBytesMax bytes.
std::vector<std::byte> make_frame(const FrameHeader& header, std::span<const std::byte> payload);
// The tag's place in a frame.
std::span<std::byte> tag_of(std::span<std::byte> frame);

// Splits a frame; the views point into `bytes`. Errc::invalid if its size, magic, kind or zero byte is wrong.
Result<FrameView> parse_frame(std::span<const std::byte> bytes);

}  // namespace weft::net
