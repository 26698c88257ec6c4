// Unsent messages of a non-blocking socket. For one thread at a time.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <vector>

#include "os/sys.h"
#include "weft/result.h"

namespace weft::control {

class SendQueue {
 public:
  void push(std::string frame, std::vector<Fd> fds);
  // Sends until the socket is full or the queue is empty. Errc::unreachable: the other end has closed.
  Status flush(int socket);
  bool empty() const { return frames_.empty(); }
  std::size_t bytes() const { return bytes_; }

 private:
  struct Frame {
    std::string text;
    std::size_t sent = 0;
    std::vector<Fd> fds;  // sent with the last byte
  };
  std::deque<Frame> frames_;
  std::size_t bytes_ = 0;
};

}  // namespace weft::control
