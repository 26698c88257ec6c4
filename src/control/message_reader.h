// Splits a stream of bytes and descriptors into messages. Pure, bounded, for one thread.
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
  // Adds bytes and descriptors that were received together.
  void feed(std::span<const std::byte> bytes, std::vector<Fd> fds);
  // Returns the next whole message, or nothing. After each feed(), call it until it returns nothing. Errc::invalid: the
  // bytes are no message, or descriptors arrived without the end of their message. Then the stream is unusable.
  Result<std::optional<Message>> next();
  bool has_part() const { return bytes_.size() > at_; }  // true if an incomplete message is buffered

 private:
  Result<std::optional<Message>> none_yet() const;
  std::string bytes_;
  std::size_t at_ = 0;   // start of the next message
  std::vector<Fd> fds_;  // received with the newest bytes
};

}  // namespace weft::control
