// Deadlines of waits (header only).
//
// Progress decides how long a wait for bytes of other nodes lasts. Such a wait ends when the peer, the source or the
// daemon has been silent for kSilenceMax, and never because an answer takes long. A byte, an answer, and the message
// that a request is queued are signs of life. The times of these waits are defined only here; src/peers/README.md has
// the table of the waits.
#pragma once

#include <chrono>

namespace weft {

using Deadline = std::chrono::steady_clock::time_point;

inline Deadline deadline_in(std::chrono::milliseconds time) {
  return std::chrono::steady_clock::now() + time;
}

// A peer, a source or the daemon is silent if it has sent nothing for this time. A read then fails (weft.7).
inline constexpr std::chrono::milliseconds kSilenceMax{10'000};
// Interval at which a waiting caller asks its peer for a sign of life: ten times before the peer counts as silent.
inline constexpr std::chrono::milliseconds kSignEvery{1'000};
// The first question comes earlier, because the request or its answer may be lost with an old connection.
inline constexpr std::chrono::milliseconds kFirstSignAfter{300};
// A peer whose connection has ended, or whose provider does not report that, may have restarted. It would then never
// answer in the old session, so it has this time to show that it knows the session.
inline constexpr std::chrono::milliseconds kRestartedAfter{2'000};
// While a node's workers have begun nothing for this time, a queued call counts as in work: it shows no progress.
inline constexpr std::chrono::milliseconds kQueueStandsMax = kSilenceMax / 4;
// Windows of an answer stay open for this time after the last message of their reader.
inline constexpr std::chrono::milliseconds kWindowLease = kSilenceMax;

}  // namespace weft
