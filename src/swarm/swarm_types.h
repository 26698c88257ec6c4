// Types, bounds and random numbers of the three parts of a swarm.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace weft {

using SwarmTime = std::chrono::steady_clock::time_point;  // the caller's clock, virtual in the simulator
using SwarmNode = std::uint32_t;                          // a number that the caller gives a node

// A want that waits is answered after this time, without a unit if there is none.
inline constexpr std::chrono::milliseconds kWantWaitMax{4'000};
// A call fails if its node gives nothing for this time. A directory node answers a join within
// Introductions::kJoinWait.
inline constexpr std::chrono::milliseconds kJoinPatience{1'000};
inline constexpr std::chrono::milliseconds kWantPatience = kWantWaitMax + std::chrono::milliseconds(1'000);
inline constexpr std::size_t kWantsOpen = 12;      // of one receiver, for one version
inline constexpr std::size_t kUploadsAtOnce = 12;  // of one sender, for all versions
// Uploads beside these, to nodes that have been slow to read them: so many that one silent node holds none of the
// places, and so few that the uploads on a slow link still end in time.
inline constexpr std::size_t kUploadsAsideMax = kWantsOpen;
// Wants at one sender, for all versions: each takes kWantBytes and a set of up to 4 KiB, and all less than 8 MiB.
inline constexpr std::size_t kWantsWaiting = 1536;
inline constexpr std::size_t kWantBytes = 1024;  // of a waiting want without its set, at most
// Every fourth upload sends the unit that a reader of the receiver waits for. If all uploads did, all nodes would fetch
// the same unit. If no upload did, the reader would wait for the whole version.
inline constexpr std::uint32_t kReaderEvery = 4;

// Random numbers that are the same with every compiler (SplitMix64, Steele et al., OOPSLA 2014).
class SwarmRandom {
 public:
  explicit SwarmRandom(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15U;
    z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31U);
  }
  std::size_t below(std::size_t end) { return static_cast<std::size_t>(next() % end); }  // end > 0

 private:
  std::uint64_t state_;
};

}  // namespace weft
