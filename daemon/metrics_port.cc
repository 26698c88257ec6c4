#include "daemon/metrics_port.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>

#include "base/unix_socket.h"

namespace weft {
namespace {

constexpr std::size_t kRequestMax = 8U << 10U;

std::string response(std::string_view status, std::string_view type, std::string_view body) {
  return fmt::format("HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}", status,
                     type, body.size(), body);
}

}  // namespace

std::string http_answer(std::string_view request, const std::function<std::string()>& text) {
  const auto end = request.find("\r\n");
  if (end == std::string_view::npos)
    return request.size() < kRequestMax ? "" : response("431 Too Large", "text/plain", "too large\n");
  const std::string_view line = request.substr(0, end);
  if (!line.starts_with("GET ")) return response("405 Method Not Allowed", "text/plain", "GET only\n");
  if (!line.starts_with("GET /metrics ")) return response("404 Not Found", "text/plain", "/metrics is here\n");
  return response("200 OK", "text/plain; version=0.0.4; charset=utf-8", text());
}

Result<std::unique_ptr<MetricsPort>> MetricsPort::open(std::uint16_t port, std::function<std::string()> text,
                                                       std::chrono::milliseconds patience) {
  const std::string where = fmt::format("metrics_port {}", port);
  Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return sys_error(errno, where);
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 || ::listen(fd.get(), 16) != 0)
    return sys_error(errno, where);
  return std::unique_ptr<MetricsPort>(new MetricsPort(std::move(fd), std::move(text), patience));
}

MetricsPort::MetricsPort(Fd listener, std::function<std::string()> text, std::chrono::milliseconds patience)
    : listener_(std::move(listener)), text_(std::move(text)), patience_(patience), thread_([this] { run(); }) {}

MetricsPort::~MetricsPort() {
  ending_ = true;
  waker_.wake();
  thread_.join();
}

void MetricsPort::run() {
  while (!ending_) {
    std::array<pollfd, 2> ready = {{{waker_.fd(), POLLIN, 0}, {listener_.get(), POLLIN, 0}}};
    if (::poll(ready.data(), ready.size(), -1) < 0 || ready[1].revents == 0) continue;
    auto client = accept_unix(listener_.get());
    if (client.ok() && client->valid()) answer(*client);
  }
}

bool MetricsPort::is_ready(int client, short events, Deadline deadline) const {
  using std::chrono::milliseconds;
  while (!ending_) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left <= milliseconds(0)) return false;
    std::array<pollfd, 2> ready = {{{waker_.fd(), POLLIN, 0}, {client, events, 0}}};
    if (::poll(ready.data(), ready.size(), static_cast<int>(left.count())) > 0 && ready[1].revents != 0)
      return !ending_;
  }
  return false;
}

void MetricsPort::send_all(int client, std::string_view text, Deadline deadline) const {
  while (!text.empty() && is_ready(client, POLLOUT, deadline)) {
    auto sent = send_some(client, std::as_bytes(std::span(text)));
    if (!sent.ok()) return;
    text.remove_prefix(*sent);
  }
}

void MetricsPort::answer(const Fd& client) const {
  const Deadline deadline = deadline_in(patience_);
  std::string request;
  std::array<std::byte, kRequestMax> bytes{};
  while (is_ready(client.get(), POLLIN, deadline)) {
    auto received = receive_some(client.get(), bytes);
    if (!received.ok() || received->end) return;
    request.append(reinterpret_cast<const char*>(bytes.data()), received->bytes);
    const std::string text = http_answer(request, text_);
    if (!text.empty()) return send_all(client.get(), text, deadline);
  }
}

}  // namespace weft
