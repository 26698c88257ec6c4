#include "control/send_queue.h"

#include <span>
#include <utility>

#include "os/unix_socket.h"

namespace weft::control {

void SendQueue::push(std::string frame, std::vector<Fd> fds) {
  bytes_ += frame.size();
  frames_.push_back({std::move(frame), 0, std::move(fds)});
}

Status SendQueue::flush(int socket) {
  while (!frames_.empty()) {
    Frame& frame = frames_.front();
    std::vector<int> fds;
    auto rest = std::as_bytes(std::span(frame.text)).subspan(frame.sent);
    if (!frame.fds.empty() && rest.size() > 1)
      rest = rest.first(rest.size() - 1);  // the descriptors go with the last byte
    else
      for (const Fd& fd : frame.fds) fds.push_back(fd.get());
    WEFT_TRY(const std::size_t sent, send_some(socket, rest, fds));
    if (sent == 0) return {};
    if (!fds.empty()) frame.fds.clear();
    frame.sent += sent;
    bytes_ -= sent;
    if (frame.sent == frame.text.size()) frames_.pop_front();
  }
  return {};
}

}  // namespace weft::control
