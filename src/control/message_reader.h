// Messages out of a stream of bytes and descriptors. Pure, bounded, for one thread.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "control/message.h"

namespace weft::control {

class MessageReader {
 public:
  // Takes bytes and descriptors that were received together.
  void feed(std::span<const std::byte> bytes, std::vector<Fd> fds);
  // Returns the next whole message, or nothing while there is none; the caller calls it until then after each feed().
  // Errc::invalid: the bytes are no message, or descriptors came without the end of a message that counts them. The
  // stream is of no use from there on.
  Result<std::optional<Message>> next();
  bool has_part() const { return bytes_.size() > at_; }  // the first bytes of a message that is not whole

 private:
  Result<std::optional<Message>> none_yet() const;
  std::string bytes_;
  std::size_t at_ = 0;   // where the next message begins
  std::vector<Fd> fds_;  // came with the newest bytes
};

}  // namespace weft::control
