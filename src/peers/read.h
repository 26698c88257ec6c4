// Reading what a peer's answer gives, into memory of ours.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "peers/read_pace.h"
#include "weft/exchange.h"
#include "weft/result.h"

namespace weft {

// Where an answer's bytes go.
struct PeerTarget {
  std::span<std::byte> memory;       // exactly as many as are expected
  std::shared_ptr<Landing> landing;  // of that memory; null: it has none, and buffers of the exchange are used
  std::size_t at = 0;                // of the landing, where `memory` begins
  bool spoiled = false;              // a read that was given up may still write there
  std::size_t came = 0;              // bytes from the start that have arrived, also after a failure
};

struct PeerPatience {
  ReadPace& pace;                      // of the peer
  std::chrono::milliseconds patience;  // with a peer that is silent
  OnSign on_sign;                      // also called when bytes have come; may be empty
};

// All bytes of the answer: its head where it has no windows, else its windows, one after the other. Errc::corrupt when
// these are not as many as `target` expects, Errc::timed_out also for bytes that came later than their windows were
// open: the peer is slow, whatever they are. Errc::cancelled: `on_sign` said so.
Status read_answer(Exchange& exchange, Answer& answer, PeerTarget& target, const PeerPatience& patience);

// The same, of an answer whose size is not known before: `bytes_max` at most.
Result<std::vector<std::byte>> answer_bytes(Exchange& exchange, Answer& answer, std::uint64_t bytes_max,
                                            const PeerPatience& patience);

}  // namespace weft
