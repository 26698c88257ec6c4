// A session between two daemons that have proved to each other that they hold the cluster's key. Frames have a tag and
// a counter, payloads are encrypted, and keys roll. Pure: bytes in, bytes out; one thread at a time.
//
// A frame is a transport message of Noise (noise.h) with an explicit nonce, as section 11.4 of the specification has it
// where messages can be lost or come out of order: the nonce is the counter in the frame's header, and the receiver
// drops a frame whose counter is not above all that it has accepted. The associated data is the header, which the
// specification leaves empty, so that nobody can change the kind of a frame. The keys roll by Rekey [11.3] after each
// kFramesPerEpoch frames; the header names the epoch, because the frames at the turn can be lost.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "net/session/frame.h"
#include "net/session/noise.h"
#include "net/session/secret.h"
#include "weft/result.h"

namespace weft::net {

// The keys of one direction. The key of each epoch is derived from the previous one, which is then forgotten.
class DirectionKeys {
 public:
  explicit DirectionKeys(const CipherState& first) : cipher_(first) {}
  const CipherState& cipher() const { return cipher_; }  // seals the frames of this epoch
  std::uint16_t epoch() const { return epoch_; }
  DirectionKeys next() const;

 private:
  CipherState cipher_;
  std::uint16_t epoch_ = 0;
};

inline constexpr std::uint64_t kFramesPerEpoch = 1U << 16U;

class Session {
 public:
  struct Ends {
    std::uint64_t ours = 0;    // session number in frames to this node
    std::uint64_t theirs = 0;  // session number in frames to the peer
    std::string node;          // the peer's, proved
    EndpointAddress address;   // the peer's, as it claims; empty on the caller's side
    Bytes32 key_id{};          // of the cluster's key that both have proved
  };
  Session(Ends ends, const CipherState& to_them, const CipherState& to_us)
      : ends_(std::move(ends)), sending_(to_them), receiving_(to_us) {}

  const Ends& ends() const { return ends_; }

  // Returns a frame to send. Errc::invalid for a payload over kPayloadBytesMax. Errc::unsupported if all epochs are
  // used up (2^32 frames): a new handshake is due.
  Result<std::vector<std::byte>> seal(FrameKind kind, std::span<const std::byte> payload);

  // Returns the payload of a frame. Errc::permission if its tag is wrong, its counter is not above the last one, or it
  // is of another session or epoch. The session is then unchanged.
  Result<std::vector<std::byte>> open(const FrameView& frame);

 private:
  Ends ends_;
  DirectionKeys sending_;
  DirectionKeys receiving_;
  std::uint64_t sent_ = 0;  // frames, and so the counter of the next one
  std::uint64_t next_ = 0;  // the lowest acceptable counter
};

}  // namespace weft::net
