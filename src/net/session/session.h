// A session between two daemons that have proved to each other that they hold the cluster's key. Frames have a tag and
// a counter, payloads are encrypted, and keys roll. Pure: bytes in, bytes out; one thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "net/session/frame.h"
#include "net/session/secret.h"
#include "weft/result.h"

namespace weft::net {

// The keys of one direction. The key of each epoch is derived from the previous one, which is then forgotten.
class DirectionKeys {
 public:
  explicit DirectionKeys(const Secret& first);
  const Secret& frame_key() const { return frame_key_; }  // seals the frames of this epoch
  std::uint16_t epoch() const { return epoch_; }
  DirectionKeys next() const;

 private:
  Secret key_;
  Secret frame_key_;
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
  };
  Session(Ends ends, const Secret& to_them, const Secret& to_us)
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
  std::uint64_t sent_ = 0;      // counters begin at 1
  std::uint64_t received_ = 0;  // the highest accepted counter
};

}  // namespace weft::net
