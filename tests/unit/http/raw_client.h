// A client of an HTTP server on loopback that sends what the test says, byte for byte.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "os/sys.h"
#include "os/unix_socket.h"

namespace weft::testing {

class RawClient {
 public:
  // `receive_buffer`: bytes that the kernel may keep for this client; 0: its default.
  explicit RawClient(std::uint16_t port, int receive_buffer = 0)
      : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (receive_buffer != 0) ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
      throw std::runtime_error("connect");
  }

  // False if the server has closed the connection.
  bool send(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t sent = ::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      text.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  // Returns all that the server sends until it closes the connection.
  std::string all() {
    while (more()) {
    }
    return std::exchange(received_, {});
  }
  // Returns the next answer: its head, and as many bytes as its Content-Length says, or none after HEAD. Shorter if the
  // server closes the connection before.
  std::string answer(bool after_head = false) {
    constexpr std::string_view kLength = "\r\nContent-Length: ";
    std::size_t end = 0;
    while ((end = received_.find("\r\n\r\n")) == std::string::npos)
      if (!more()) return std::exchange(received_, {});
    end += 4;
    const auto length = received_.find(kLength);
    if (!after_head && length < end) end += std::stoull(received_.substr(length + kLength.size(), 20));
    while (received_.size() < end && more()) {
    }
    std::string answer = received_.substr(0, end);
    received_.erase(0, end);
    return answer;
  }
  // Sends a request and returns the answer.
  std::string ask(std::string_view method, std::string_view path, std::string_view fields = {}) {
    send(request(method, path, fields));
    return answer(method == "HEAD");
  }
  // `fields`: lines that end with "\r\n".
  static std::string request(std::string_view method, std::string_view path, std::string_view fields = {}) {
    std::string text(method);
    return text.append(" ").append(path).append(" HTTP/1.1\r\nHost: h\r\n").append(fields).append("\r\n");
  }
  // Waits until `bytes` bytes of further answers have arrived. False at the end of the connection.
  bool receive(std::size_t bytes) {
    while (received_.size() < bytes)
      if (!more()) return false;
    return true;
  }
  // Waits for more bytes. False at the end of the connection.
  bool more() {
    std::array<char, 65'536> part{};
    const ssize_t got = ::recv(fd_.get(), part.data(), part.size(), 0);
    if (got > 0) received_.append(part.data(), static_cast<std::size_t>(got));
    return got > 0;
  }
  // True if the server has closed the connection.
  bool is_closed() const { return wait_for(fd_.get(), POLLRDHUP, std::chrono::milliseconds(0)); }
  void close() { fd_.reset(); }

 private:
  Fd fd_;
  std::string received_;
};

inline std::string body_of(std::string_view answer) {
  const auto end = answer.find("\r\n\r\n");
  return end == std::string_view::npos ? "" : std::string(answer.substr(end + 4));
}

}  // namespace weft::testing
