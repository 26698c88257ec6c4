#include "daemon/metrics_port.h"

#include <fmt/core.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <vector>

#include "base/limits.h"
#include "os/unix_socket.h"

namespace weft {
namespace {

constexpr auto kAcceptPause = std::chrono::milliseconds(100);  // after a failed accept, as without free descriptors

int milliseconds_until(Deadline deadline, Deadline now) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - now);
  return static_cast<int>(left.count());
}

std::string response(std::string_view status, std::string_view type, std::string_view body) {
  return fmt::format("HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}", status,
                     type, body.size(), body);
}

}  // namespace

std::string http_answer(std::string_view request, const std::function<std::string()>& text) {
  const auto end = request.find("\r\n");
  if (end == std::string_view::npos)
    return request.size() < limits::kMetricsRequestMax ? "" : response("431 Too Large", "text/plain", "too large\n");
  const std::string_view line = request.substr(0, end);
  if (!line.starts_with("GET ")) return response("405 Method Not Allowed", "text/plain", "GET only\n");
  if (!line.starts_with("GET /metrics ")) return response("404 Not Found", "text/plain", "/metrics is here\n");
  return response("200 OK", "text/plain; version=0.0.4; charset=utf-8", text());
}

Result<std::unique_ptr<MetricsPort>> MetricsPort::open(std::uint16_t port, std::function<std::string()> text,
                                                       std::chrono::milliseconds patience, const TimeSource& time) {
  const std::string where = fmt::format("metrics_port {}", port);
  WEFT_TRY(Fd fd, listen_tcp("127.0.0.1", port, limits::kMetricsClientsMax, where));
  return std::unique_ptr<MetricsPort>(new MetricsPort(std::move(fd), std::move(text), patience, time));
}

MetricsPort::MetricsPort(Fd listener, std::function<std::string()> text, std::chrono::milliseconds patience,
                         const TimeSource& time)
    : listener_(std::move(listener)), text_(std::move(text)), patience_(patience), time_(time) {
  worker_.start([this] { return round(); }, [this] { bell_.ring(); });
}

// Serves the clients before it accepts new ones, so that no client with a received request is dropped for a new one.
Worker::Pause MetricsPort::round() {
  std::vector<pollfd> ready = {{bell_.fd(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
  int wait_ms = -1;
  if (!clients_.empty()) wait_ms = std::max(milliseconds_until(clients_.front().deadline, time_.now()), 0);
  for (const Client& client : clients_)
    ready.push_back({client.socket.get(), static_cast<short>(client.answer.empty() ? POLLIN : POLLOUT), 0});
  if (::poll(ready.data(), ready.size(), wait_ms) < 0) return Worker::Pause(0);
  const Deadline now = time_.now();
  std::size_t at = 2;
  clients_.remove_if([&](Client& client) {
    const bool late = client.deadline <= now;
    return (ready[at++].revents != 0 && !serve(client)) || late;
  });
  return ready[1].revents != 0 ? accept() : Worker::Pause(0);
}

Worker::Pause MetricsPort::accept() {
  auto socket = accept_socket(listener_.get());
  if (!socket.ok()) return kAcceptPause;
  if (!socket->valid()) return Worker::Pause(0);
  if (clients_.size() >= limits::kMetricsClientsMax) clients_.pop_front();
  clients_.push_back({std::move(socket).value(), time_.now() + patience_, {}, {}});
  return Worker::Pause(0);
}

bool MetricsPort::serve(Client& client) const {
  return client.answer.empty() ? receive(client) : send(client);
}

bool MetricsPort::receive(Client& client) const {
  std::array<std::byte, limits::kMetricsRequestMax> bytes{};
  const auto received = receive_some(client.socket.get(), bytes);
  if (!received.ok() || received->end) return false;
  client.request.append(reinterpret_cast<const char*>(bytes.data()), received->bytes);
  client.answer = http_answer(client.request, text_);
  return client.answer.empty() || send(client);
}

// Sends more of the answer. False if all is sent, or if the client has closed.
bool MetricsPort::send(Client& client) {
  const auto sent = send_some(client.socket.get(), std::as_bytes(std::span(client.answer)));
  if (!sent.ok()) return false;
  client.answer.erase(0, *sent);
  return !client.answer.empty();
}

}  // namespace weft
