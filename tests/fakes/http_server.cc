#include "fakes/http_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdlib>
#include <stdexcept>

namespace weft::testing {

void send_text(int fd, const std::string& text) {
  std::size_t sent = 0;
  while (sent < text.size()) {
    ssize_t n = ::send(fd, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (n <= 0) return;
    sent += static_cast<std::size_t>(n);
  }
}

std::string http_answer(int status, const std::string& body, const std::string& fields) {
  return "HTTP/1.1 " + std::to_string(status) + " X\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" +
         fields + "Connection: close\r\n\r\n" + body;
}

HttpServer::HttpServer(Answer answer)
    : answer_(std::move(answer)), listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  if (::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      ::listen(listener_.get(), 64) != 0 ||
      ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0)
    throw std::runtime_error("no server on loopback");
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { accept_all(); });
}

HttpServer::~HttpServer() {
  stopping_ = true;
  ::shutdown(listener_.get(), SHUT_RDWR);
  acceptor_.join();
  for (std::thread& connection : connections_) connection.join();
}

std::vector<std::string> HttpServer::heads() const {
  std::lock_guard lock(mutex_);
  return heads_;
}

std::string HttpServer::last_head() const {
  std::lock_guard lock(mutex_);
  return heads_.empty() ? std::string() : heads_.back();
}

void HttpServer::accept_all() {
  for (;;) {
    int fd = ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) return;
    connections_.emplace_back([this, fd] {
      Fd owned(fd);
      serve(fd);
    });
  }
}

void HttpServer::serve(int fd) {
  std::string text;
  std::size_t head = std::string::npos;
  std::size_t length = 0;
  char buffer[65536];
  while (head == std::string::npos || text.size() < head + 4 + length) {
    ssize_t n = ::recv(fd, buffer, sizeof buffer, 0);
    if (n <= 0) return;
    text.append(buffer, static_cast<std::size_t>(n));
    head = text.find("\r\n\r\n");
    auto field = text.find("Content-Length: ");
    if (head != std::string::npos && field != std::string::npos && field < head)
      length = std::strtoul(text.c_str() + field + 16, nullptr, 10);
  }
  {
    std::lock_guard lock(mutex_);
    heads_.push_back(text.substr(0, head + 2));
  }
  auto begin = text.find(' ') + 1;
  answer_(fd, text.substr(begin, text.find(' ', begin) - begin), text.substr(head + 4));
}

}  // namespace weft::testing
