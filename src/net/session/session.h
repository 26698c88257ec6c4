// One session between two daemons that proved to each other that they hold the cluster's key: frames with a tag and a
// counter, their payload encrypted, keys that roll. Pure: bytes in, bytes out; one thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "net/session/frame.h"
#include "net/session/secret.h"
#include "weft/result.h"

namespace weft::net {

// The keys of one direction, epoch after epoch: each is made from the one before, which is then forgotten.
class DirectionKeys {
 public:
  explicit DirectionKeys(const Secret& first);
  const Secret& frame_key() const { return frame_key_; }  // that frames of this epoch are sealed with
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
    std::uint64_t ours = 0;    // the number that frames to us name
    std::uint64_t theirs = 0;  // the number that frames to them name
    std::string node;          // theirs, proved
    EndpointAddress address;   // theirs, as they said it; empty on the caller's side
  };
  Session(Ends ends, const Secret& to_them, const Secret& to_us)
      : ends_(std::move(ends)), sending_(to_them), receiving_(to_us) {}

  const Ends& ends() const { return ends_; }

  // A frame to send. Errc::invalid for a payload over kPayloadBytesMax; Errc::unsupported when the session's epochs are
  // used up (4 thousand million frames): a new handshake is due.
  Result<std::vector<std::byte>> seal(FrameKind kind, std::span<const std::byte> payload);

  // The payload of a frame of this session. Errc::permission: its tag is wrong, it came before, or it
  // is of another epoch; the session is as it was.
  Result<std::vector<std::byte>> open(const FrameView& frame);

 private:
  Ends ends_;
  DirectionKeys sending_;
  DirectionKeys receiving_;
  std::uint64_t sent_ = 0;      // counters begin at 1
  std::uint64_t received_ = 0;  // the highest that was accepted
};

}  // namespace weft::net
