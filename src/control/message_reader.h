// Messages out of a stream of bytes and descriptors. Pure, bounded, for one thread.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "control/message.h"

namespace weft::control {

class MessageReader {
 public:
  // What was received together. Errc::invalid: more than any message has; the stream is of no use from here on.
  Status feed(std::span<const std::byte> bytes, std::vector<Fd> fds);
  // The next whole message; nothing while there is none. To be called until then after each feed().
  Result<std::optional<Message>> next();

 private:
  std::string bytes_;
  std::size_t at_ = 0;  // where the next message begins
  std::deque<Fd> fds_;
};

}  // namespace weft::control
