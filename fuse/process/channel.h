// Messages between supervisor and server over a pair of sockets. A message is one letter, a text, and possibly the
// device. Each end notices when the peer's process ends.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "os/sys.h"
#include "weft/result.h"

namespace weft {

enum class Say : char {
  opened = 'o',  // server: the store is open; send me the device
  ready = 'r',   // server: the mount answers
  failed = 'e',  // server: I end, for the reason in the text
  stop = 's',    // server: I was asked to stop
  device = 'd',  // supervisor: the device is attached
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
// Waits for a message. nullopt: the other end is gone.
Result<std::optional<Message>> hear(int channel);

}  // namespace weft
