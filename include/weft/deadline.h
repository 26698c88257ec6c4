// When a wait ends.
//
// Progress decides over waits for bytes of other nodes. Such a wait ends when the peer, the source or the daemon has
// been silent for kSilenceMax, and never because an answer takes long. A byte, an answer, and the word that a request
// is queued are signs of life. The times of these waits stand here alone; src/peers/README.md has the table of the
// waits.
#pragma once

#include <chrono>

namespace weft {

using Deadline = std::chrono::steady_clock::time_point;

inline Deadline deadline_in(std::chrono::milliseconds time) {
  return std::chrono::steady_clock::now() + time;
}

// A peer, a source or the daemon is silent if it sent nothing for so long. A read gives up after this time (weft.7).
inline constexpr std::chrono::milliseconds kSilenceMax{10'000};
// A caller that waits asks its peer for a sign of life so often: ten times before the peer counts as silent.
inline constexpr std::chrono::milliseconds kSignEvery{1'000};
// The first question comes earlier, because the request or its answer may be lost with an old connection.
inline constexpr std::chrono::milliseconds kFirstSignAfter{300};
// A peer whose connection has ended, or whose provider does not tell, may have restarted, and would then never answer
// in the old session: it has this time to show that it knows the session.
inline constexpr std::chrono::milliseconds kRestartedAfter{2'000};
// Windows of an answer stay open for so long after the last word of their reader.
inline constexpr std::chrono::milliseconds kWindowLease = kSilenceMax;

}  // namespace weft
