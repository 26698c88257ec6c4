// What ends a session, and how soon. Somebody who holds the key makes one frame by frame, and then says what no daemon
// says.
#pragma once

#include <string>
#include <string_view>

#include "hostile_frames.h"

namespace weft::hostile {

// What is said in an open session:
//   garbled    a frame with a wrong tag
//   truncated  the beginning of a frame
//   again      a frame that was answered, once more
//   nonsense   a frame with a true tag, around bytes that are no message
//   backwards  a frame with a true tag, around a message that only the other end may send
bool ends_a_session(std::string_view what);

struct Closed {
  double seconds = 0;       // from the frame to the other end's word that the session is over
  std::size_t answers = 0;  // to the frame, and to a question after it: none, when it is over
};

// Errc::timed_out when the daemon does not answer in the session, or never ends it.
Result<Closed> close_session(const Victim& victim, const std::string& key_file, std::string_view what);

// Says hello with a key that is not the cluster's; the answer to it was refused here, as it must be.
Status greet_with_another_key(const Victim& victim);

}  // namespace weft::hostile
