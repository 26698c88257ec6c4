// Tests what ends a session, and how soon. A holder of the key makes a session frame by frame, and then sends a frame
// that no daemon sends.
#pragma once

#include <string>
#include <string_view>

#include "hostile_frames.h"

namespace weft::hostile {

// The frame that is sent in an open session:
//   garbled    a frame with a wrong tag
//   truncated  a frame without its last byte
//   again      a repeated frame, which was answered already
//   nonsense   a frame with a valid tag around bytes that are no message
//   backwards  a frame with a valid tag around a message that only the other end may send
bool ends_a_session(std::string_view what);

struct Closed {
  double seconds = 0;       // from the frame to the other end's close of the session
  std::size_t answers = 0;  // answers to the frame and to a later question; 0 for an ended session
};

// Errc::timed_out if the daemon does not answer in the session, or never ends it.
Result<Closed> close_session(const Victim& victim, const std::string& key_file, std::string_view what);

// Sends a hello with another key than the cluster's. Fails unless this end refuses the answer.
Status greet_with_another_key(const Victim& victim);

}  // namespace weft::hostile
