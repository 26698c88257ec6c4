#include "net/transport/tcp_patience.h"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "os/sys.h"

using namespace weft;

namespace {

sockaddr_in address_of(int socket) {
  sockaddr_in address{};
  socklen_t length = sizeof address;
  REQUIRE(::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length) == 0);
  return address;
}

// Bound to this host at any port, as libfabric does it when `reused`.
Fd bound_socket(const char* host, bool reused) {
  Fd made(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = ::inet_addr(host);
  const int one = reused ? 1 : 0;
  REQUIRE(::setsockopt(made.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0);
  REQUIRE(::bind(made.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  return made;
}

int patience_ms_of(int socket) {
  int value = 0;
  socklen_t length = sizeof value;
  REQUIRE(::getsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &value, &length) == 0);
  return value;
}

bool asks_when_idle(int socket) {
  int value = 0;
  socklen_t length = sizeof value;
  REQUIRE(::getsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &value, &length) == 0);
  return value != 0;
}

constexpr int kExpectedMs = std::chrono::milliseconds(net::kTcpPatience).count();

}  // namespace

TEST_CASE("sockets of the endpoint are bounded, those that it accepts too, and others are left alone") {
  const Fd listener = bound_socket("127.0.0.1", true);
  REQUIRE(::listen(listener.get(), 1) == 0);
  const sockaddr_in own = address_of(listener.get());
  const Fd other_host = bound_socket("127.0.0.2", true);
  const Fd no_fabric = bound_socket("127.0.0.1", false);
  const Fd caller = bound_socket("127.0.0.1", true);
  net::bound_tcp_patience(std::as_bytes(std::span(&own, 1)));
  REQUIRE(::connect(caller.get(), reinterpret_cast<const sockaddr*>(&own), sizeof own) == 0);
  const Fd accepted(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  REQUIRE(accepted.valid());
  for (const Fd* socket : {&listener, &caller, &accepted}) {
    CHECK(patience_ms_of(socket->get()) == kExpectedMs);
    CHECK(asks_when_idle(socket->get()));
  }
  for (const Fd* socket : {&other_host, &no_fabric}) {
    CHECK(patience_ms_of(socket->get()) == 0);
    CHECK_FALSE(asks_when_idle(socket->get()));
  }
}

TEST_CASE("an address that is none of IP bounds nothing") {
  const Fd socket = bound_socket("127.0.0.1", true);
  const std::string name = "fi_shm://1:0:a_name_that_is_longer_than_any_address_of_a_socket";
  net::bound_tcp_patience(std::as_bytes(std::span(name)));
  net::bound_tcp_patience({});
  CHECK(patience_ms_of(socket.get()) == 0);
}
