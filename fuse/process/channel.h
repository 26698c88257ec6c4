// What supervisor and server say to each other: whole messages over a pair of sockets, one letter and a text, and the
// device. Either end sees when the other is gone.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "os/sys.h"
#include "weft/result.h"

namespace weft {

enum class Say : char {
  opened = 'o',  // server: the store is open; give me the device
  ready = 'r',   // server: the mount answers
  failed = 'e',  // server: I end, for the reason in the text
  stop = 's',    // server: somebody asked me to stop
  device = 'd',  // supervisor: here it is
};

struct Message {
  Say what = Say::failed;
  std::string text;
  Fd device;
};

struct ChannelEnds {
  Fd supervisor;
  Fd server;
};
Result<ChannelEnds> make_channel();

Status say(int channel, Say what, std::string_view text = "", int device = -1);
// Waits for one. nullopt: the other end is gone.
Result<std::optional<Message>> hear(int channel);

}  // namespace weft
