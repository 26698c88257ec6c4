// Reads the bytes of a peer's answer into local memory.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "pace/pace_gate.h"
#include "peers/read_pace.h"
#include "weft/cluster/exchange.h"
#include "weft/result.h"

namespace weft {

// The destination of an answer's bytes.
struct PeerTarget {
  std::span<std::byte> memory;       // exactly as long as the expected bytes
  std::shared_ptr<Landing> landing;  // of `memory`; null: read through buffers of the exchange
  std::size_t at = 0;                // offset of `memory` in the landing
  bool spoiled = false;              // an abandoned read may still write to `memory`
  std::size_t came = 0;              // bytes from the start that have arrived, also after a failure
  // How long a rate of this node held the read back while nothing was on its way. Set by the read.
  std::chrono::nanoseconds held{0};
};

struct PeerPatience {
  ReadPace& pace;                      // of the peer
  std::chrono::milliseconds patience;  // with a silent peer
  OnSign on_sign;                      // also called when bytes arrive; may be empty
  // Asked every second while the peer is silent, and while a rate holds the read back: false ends the read with
  // Errc::cancelled. May be empty.
  std::function<bool()> is_wanted = {};
  PaceGate::Read* paced = nullptr;  // asked before each piece; null: nothing paces the read
};

// Reads all bytes of an answer: its head if it has no windows, else its windows in order. Errc::corrupt if their size
// is not that of `target`. Errc::timed_out also for bytes that arrive after the windows' lease: the peer is slow, and
// the bytes may be zeros. Errc::cancelled: `on_sign` returned false.
Status read_answer(Exchange& exchange, Answer& answer, PeerTarget& target, const PeerPatience& patience);

// As read_answer(), for a part of the windows' bytes: those from offset `from` on. Errc::corrupt if the windows have
// fewer.
Status read_windows(Exchange& exchange, Answer& answer, std::uint64_t from, PeerTarget& target,
                    const PeerPatience& patience);

// Returns the bytes of an answer of unknown size, `bytes_max` at most.
Result<std::vector<std::byte>> answer_bytes(Exchange& exchange, Answer& answer, std::uint64_t bytes_max,
                                            const PeerPatience& patience);

}  // namespace weft
