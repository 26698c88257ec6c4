#include "daemon/figures.h"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/limits.h"
#include "daemon/metrics_port.h"
#include "fakes/stepped_time.h"
#include "os/sys.h"

namespace weft {
namespace {

using namespace std::chrono_literals;

bool has_line(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

TEST_CASE("requests are a histogram by name") {
  Figures figures;
  figures.request_ended("import", 50ms, false);
  figures.request_ended("import", 2s, true);
  figures.request_ended("tag", 0ms, false);
  const std::string text = figures.text();
  CHECK(has_line(text, "# TYPE weft_request_seconds histogram"));
  CHECK(has_line(text, R"(weft_request_seconds_bucket{request="import",le="0.01"} 0)"));
  CHECK(has_line(text, R"(weft_request_seconds_bucket{request="import",le="0.1"} 1)"));
  CHECK(has_line(text, R"(weft_request_seconds_bucket{request="import",le="10"} 2)"));
  CHECK(has_line(text, R"(weft_request_seconds_bucket{request="import",le="+Inf"} 2)"));
  CHECK(has_line(text, R"(weft_request_seconds_sum{request="import"} 2.05)"));
  CHECK(has_line(text, R"(weft_requests_failed_total{request="import"} 1)"));
  CHECK(has_line(text, R"(weft_requests_failed_total{request="tag"} 0)"));
  CHECK(figures.requests() == 3);
}

TEST_CASE("figures are read at each look, labels are escaped") {
  Figures figures;
  double value = 1;
  figures.add("a", "gauge", "What it is.", [&] { return value; });
  figures.add("b", "counter", "Another.", Figures::Read([] {
                return std::vector<Figures::Sample>{{{{"from", "x\"\\\ny"}}, 2.5}};
              }));
  CHECK(has_line(figures.text(), "a 1"));
  value = 2;
  CHECK(has_line(figures.text(), "a 2"));
  CHECK(has_line(figures.text(), R"(b{from="x\"\\ y"} 2.5)"));
  CHECK(has_line(figures.text(), "# HELP a What it is."));
}

TEST_CASE("HTTP: one page, and nothing before the first line is whole") {
  const auto page = [] { return std::string("a 1\n"); };
  CHECK(http_answer("GET /metr", page).empty());
  CHECK(http_answer("GET /metrics HTTP/1.1\r\n", page).ends_with("\r\n\r\na 1\n"));
  CHECK(http_answer("GET / HTTP/1.1\r\n", page).starts_with("HTTP/1.1 404 "));
  CHECK(http_answer("GET /metricsx HTTP/1.1\r\n", page).starts_with("HTTP/1.1 404 "));
  CHECK(http_answer("POST /metrics HTTP/1.1\r\n", page).starts_with("HTTP/1.1 405 "));
  CHECK(http_answer(std::string(10'000, 'x'), page).starts_with("HTTP/1.1 431 "));
}

// An HTTP client that sends what the test says.
class Client {
 public:
  explicit Client(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const sockaddr_in address = loopback(port);
    REQUIRE(::connect(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  }
  static sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }
  bool send(std::string_view text) const {
    return ::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
  }
  std::string all() const {
    std::string text;
    std::array<char, 1024> part{};
    for (ssize_t got = 0; (got = ::recv(fd_.get(), part.data(), part.size(), 0)) > 0;)
      text.append(part.data(), static_cast<std::size_t>(got));
    return text;
  }

 private:
  Fd fd_;
};

std::uint16_t free_port() {
  const Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = Client::loopback(0);
  socklen_t size = sizeof address;
  REQUIRE(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), size) == 0);
  REQUIRE(::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
  return ntohs(address.sin_port);
}

TEST_CASE("HTTP: a slow client has a bounded total time, and other clients do not wait for it") {
  const std::uint16_t port = free_port();
  testing::SteppedTime time;
  const auto served = MetricsPort::open(
      port, [] { return std::string("a 1\n"); }, 60s, time);
  REQUIRE(served.ok());
  const Client slow(port);
  CHECK(slow.send("G"));
  const Client other(port);
  CHECK(other.send("GET /metrics HTTP/1.1\r\n\r\n"));
  CHECK(other.all().ends_with("a 1\n"));
  time.pass(59s);
  CHECK(slow.send("E"));
  const Client third(port);
  CHECK(third.send("GET /metrics HTTP/1.1\r\n\r\n"));
  CHECK(third.all().ends_with("a 1\n"));
  time.pass(1s);
  CHECK(slow.send("T"));
  CHECK(slow.all().empty());  // the server has closed the connection
}

TEST_CASE("HTTP: silent clients do not block others") {
  const std::uint16_t port = free_port();
  const auto served = MetricsPort::open(
      port, [] { return std::string("a 1\n"); }, 600s);
  REQUIRE(served.ok());
  std::vector<std::unique_ptr<Client>> silent;
  for (std::size_t i = 0; i < 2 * limits::kMetricsClientsMax; ++i) silent.push_back(std::make_unique<Client>(port));
  const Client other(port);
  CHECK(other.send("GET /metrics HTTP/1.1\r\n\r\n"));
  CHECK(other.all().ends_with("a 1\n"));
}

TEST_CASE("HTTP: a client that sends nothing does not keep the port from ending") {
  const std::uint16_t port = free_port();
  const testing::SteppedTime time;  // patience never ends
  auto served = MetricsPort::open(
      port, [] { return std::string("a 1\n"); }, 60s, time);
  REQUIRE(served.ok());
  const Client silent(port);
  CHECK(silent.send("G"));
  const Client other(port);
  CHECK(other.send("GET /metrics HTTP/1.1\r\n\r\n"));
  CHECK(other.all().ends_with("a 1\n"));  // the server has taken the silent client before
  served->reset();
  CHECK(silent.all().empty());
}

}  // namespace
}  // namespace weft
