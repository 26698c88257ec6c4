// Connections of a transport that end and are replaced.
#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <list>
#include <string>
#include <thread>
#include <vector>

#include "fakes/tcp_providers.h"
#include "os/sys.h"
#include "weft/cluster/transport.h"

using namespace weft;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

namespace {

constexpr auto kPatience = 20s;  // how long a broken transport makes a test wait
constexpr std::byte kMessage{7};

std::unique_ptr<Transport> open(const std::string& provider, std::uint16_t port, Transport::Receiver receiver) {
  TransportOptions options;
  options.provider = provider;
  options.port = port;
  options.receiver = std::move(receiver);
  auto opened = open_fabric_transport(options);
  REQUIRE_MESSAGE(opened.ok(), opened.error().message);
  return std::move(*opened);
}

sockaddr_in socket_address(const Transport& transport) {
  sockaddr_in address{};
  REQUIRE(transport.address().size() == sizeof address);
  std::memcpy(&address, transport.address().data(), sizeof address);
  return address;
}

// Sends until a message arrives: messages are lost with their connection.
bool is_reached(Transport& from, PeerId to, const std::atomic<int>& came) {
  const int before = came;
  for (const auto end = Clock::now() + kPatience; came == before && Clock::now() < end;
       std::this_thread::sleep_for(5ms))
    static_cast<void>(from.send(to, std::span(&kMessage, 1)));
  return came != before;
}

}  // namespace

TEST_CASE("a peer that ends and comes back at its address is reached again, by what knew it before") {
  for (const std::string& provider : testing::tcp_providers_with_connections()) {
    CAPTURE(provider);
    std::atomic<int> came = 0;
    const auto count = [&came](std::span<const std::byte>) { ++came; };
    const auto one = open(provider, 0, {});
    auto other = open(provider, 0, count);
    const std::uint16_t port = ntohs(socket_address(*other).sin_port);
    const auto peer = one->add_peer(other->address());
    REQUIRE(peer.ok());
    for (int round = 0; round < 3; ++round) {
      CHECK(is_reached(*one, *peer, came));
      other.reset();
      static_cast<void>(one->send(*peer, std::span(&kMessage, 1)));
      other = open(provider, port, count);
    }
    CHECK(is_reached(*one, *peer, came));
  }
}

TEST_CASE("reads of a peer that is gone end as unreachable, and landings become idle") {
  for (const std::string& provider : testing::tcp_providers_with_connections()) {
    CAPTURE(provider);
    const auto one = open(provider, 0, {});
    const std::vector<std::byte> source(4096);
    auto other = open(provider, 0, {});
    const auto peer = one->add_peer(other->address());
    REQUIRE(peer.ok());
    auto window = other->open_window(source);
    REQUIRE(window.ok());
    const RemoteWindow remote = (*window)->remote();
    window->reset();
    other.reset();
    auto memory = std::make_shared<std::vector<std::byte>>(4096);
    const auto landing = one->open_landing(*memory, memory);
    REQUIRE(landing.ok());
    auto read = one->read(*peer, remote, 0, *landing, 0, 4096);
    REQUIRE(read.ok());
    CHECK((*read)->wait(Clock::now() + kPatience).error().code == Errc::unreachable);
    read->reset();
    for (const auto end = Clock::now() + kPatience; !(*landing)->idle() && Clock::now() < end;)
      std::this_thread::sleep_for(1ms);
    CHECK((*landing)->idle());
  }
}

TEST_CASE("silent connections do not block other callers") {
  for (const std::string& provider : testing::tcp_providers_with_connections()) {
    CAPTURE(provider);
    std::atomic<int> came = 0;
    const auto other = open(provider, 0, [&came](std::span<const std::byte>) { ++came; });
    const sockaddr_in address = socket_address(*other);
    std::vector<Fd> silent;
    for (int i = 0; i < 100; ++i) {
      Fd made(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      REQUIRE(::connect(made.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
      silent.push_back(std::move(made));
    }
    const auto one = open(provider, 0, {});
    const auto peer = one->add_peer(other->address());
    REQUIRE(peer.ok());
    CHECK(is_reached(*one, *peer, came));
  }
}

TEST_CASE("a quiet connection brings its receiver no message: what keeps it alive is empty") {
  struct Pair {
    std::unique_ptr<Transport> one, other;
    std::atomic<int> came = 0;
  };
  std::list<Pair> pairs;
  for (const std::string& provider : testing::tcp_providers_with_connections()) {
    Pair& pair = pairs.emplace_back();
    pair.one = open(provider, 0, {});
    pair.other = open(provider, 0, [&pair](std::span<const std::byte>) { ++pair.came; });
    const auto peer = pair.one->add_peer(pair.other->address());
    REQUIRE(peer.ok());
    REQUIRE(is_reached(*pair.one, *peer, pair.came));
  }
  std::this_thread::sleep_for(500ms);  // until the last messages are there
  std::vector<int> before, after;
  for (const Pair& pair : pairs) before.push_back(pair.came);
  std::this_thread::sleep_for(2'500ms);  // at least one empty message each
  for (const Pair& pair : pairs) after.push_back(pair.came);
  CHECK(after == before);
}
