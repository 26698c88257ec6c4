// The guarantees of weft/cluster/exchange.h against hostile, vanishing and stopped peers.
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <thread>

#include "exchange_support.h"
#include "fakes/tcp_providers.h"
#include "fakes/twin_transport.h"
#include "net/session/frame.h"
#include "net/session/handshake.h"

namespace weft {
namespace {

using namespace conformance;
using namespace std::chrono_literals;
using testing::as_text;
using testing::random_bytes;

// Records messages, as an eavesdropper could. Any thread.
class Recording {
 public:
  Tap tap() {
    return [this](std::span<const std::byte> message) {
      const std::lock_guard lock(mutex_);
      kept_.emplace_back(message.begin(), message.end());
      return true;
    };
  }
  std::vector<std::vector<std::byte>> kept() {
    const std::lock_guard lock(mutex_);
    return kept_;
  }

 private:
  std::mutex mutex_;
  std::vector<std::vector<std::byte>> kept_;
};

// Sends arbitrary messages to a node.
class Attacker {
 public:
  Attacker(TransportWorld& world, const Exchange& victim)
      : transport_(world.open({})), peer_(testing::must(transport_->add_peer(victim.endpoints().front().address))) {}
  const EndpointAddress& address() const { return transport_->address(); }
  void send(std::span<const std::byte> message) {
    for (const auto end = soon(); Clock::now() < end; std::this_thread::sleep_for(1ms))
      if (transport_->send(peer_, message).ok()) return;
    FAIL("the victim takes no messages");
  }

 private:
  std::unique_ptr<Transport> transport_;
  PeerId peer_;
};

TEST_CASE("a node with another key gets no answer, and its requests leave no state") {
  in_every_world_at_once([](TransportWorld& world) {
    const KeyFile key;
    const KeyFile other('o');
    ScriptedServer server;
    auto a = open_node(world, key, "a", &server);
    auto stranger = open_node(world, other, "b", &server);
    CHECK(ask(*stranger, at(*a, "a"), "bytes").error().code == Errc::permission);
    CHECK(ask(*a, at(*stranger, "b"), "bytes").error().code == Errc::permission);
    CHECK(server.answered == 0);
    CHECK(comes_true([&] { return a->figures().half_open + stranger->figures().half_open == 0; }));
    CHECK(a->figures().sessions == 0);
    CHECK(a->figures().refused > 0);
  });
}

TEST_CASE("a call fails if another node answers at the address") {
  in_every_world([](TransportWorld& world) {
    const KeyFile key;
    ScriptedServer server;
    auto a = open_node(world, key, "a", nullptr);
    auto b = open_node(world, key, "b", &server);
    const auto answer = ask(*a, at(*b, "c"), "echo");
    REQUIRE(!answer.ok());
    CHECK(answer.error().code == Errc::permission);
    CHECK(answer.error().message.find("got b") != std::string::npos);
    CHECK(server.answered == 0);
  });
}

// An attacker has overheard a call from a to b, and can send to b.
struct Overheard {
  explicit Overheard(TransportWorld& world)
      : a(open_node(world, key, "a", nullptr, recording.tap())),
        b(open_node(world, key, "b", &server)),
        attacker(world, *b) {
    REQUIRE(ask(*a, at(*b, "b"), "echo").ok());
  }
  const KeyFile key;
  ScriptedServer server;
  Recording recording;
  std::unique_ptr<Exchange> a, b;
  Attacker attacker;
};

TEST_CASE("a session that is sent again gets no answer, and ends") {
  in_every_world_at_once([](TransportWorld& world) {
    Overheard on(world);
    const auto kept = on.recording.kept();
    for (const auto& message : kept) on.attacker.send(message);
    CHECK(comes_true([&] { return on.b->figures().refused > 0; }));
    CHECK(comes_true([&] { return on.b->figures().half_open == 0; }));
    CHECK(on.server.answered == 1);
    REQUIRE(ask(*on.a, at(*on.b, "b"), "echo").ok());  // in a new session
    CHECK(on.server.answered >= 2);                    // the server is called twice if its answer is late
  });
}

TEST_CASE("hostile messages do not use unbounded memory or block other callers") {
  in_every_world_at_once([](TransportWorld& world) {
    Overheard on(world);
    for (unsigned i = 0; i < 50; ++i) on.attacker.send(random_bytes(1 + i * 160, i));
    for (const auto& message : on.recording.kept())
      for (std::size_t cut = 1; cut < message.size(); cut += 13) on.attacker.send(std::span(message).first(cut));
    net::Self nobody{net::KeyRing{net::Secret()}, "nobody", on.attacker.address(), 0};
    for (unsigned i = 0; i < 300; ++i) {
      nobody.address.back() = static_cast<std::byte>(i);  // most of these addresses do not exist
      nobody.session = i + 1;
      on.attacker.send(net::Caller(nobody).hello());
      CHECK(on.b->figures().half_open <= 64);
    }
    CHECK(ask(*on.a, at(*on.b, "b"), "echo").ok());
    CHECK(on.b->figures().refused > 100);
    CHECK(comes_true([&] { return on.b->figures().half_open == 0; }));
    CHECK(on.server.answered >= 2);  // the server is called twice if its answer is late
  });
}

TEST_CASE("windows that are not closed end with their lease") {
  in_every_world_at_once([](TransportWorld& world) {
    const KeyFile key;
    EndingServer server;
    std::atomic<bool> mute{false};
    auto a = open_node(world, key, "a", nullptr, [&](auto) { return !mute; });
    auto b = open_node(world, key, "b", &server);
    auto answer = ask(*a, at(*b, "b"), "bytes");
    REQUIRE(answer.ok());
    const LandingBuffer buffer = testing::must(a->landing(soon()));
    mute = true;
    CHECK(testing::must((*answer)->read(0, 0, buffer.landing(), 0, 4096))->wait(soon()).ok());
    CHECK(b->figures().windows == 1);
    const auto closed = [&] { return b->figures().windows == 0; };
    CHECK((comes_true(closed) || comes_true(closed)));  // a lease is as long as kPatience
    CHECK(b->figures().window_bytes == 0);
    CHECK(b->figures().lease_ends == 1);
    CHECK(server.ends.after(1) == std::vector<std::uint64_t>{0});
    const auto late = (*answer)->read(0, 0, buffer.landing(), 0, 4096);
    if (late.ok()) CHECK(!(*late)->wait(Clock::now() + 500ms).ok());
  });
}

// Two nodes with a session. The second node dies silently and is opened again at its address.
struct OpenedAnew {
  explicit OpenedAnew(std::string of) : provider(std::move(of)) {
    a = open("a");
    b = open("b");
    peer = at(*b, "b");
    REQUIRE(ask(*a, peer, "echo").ok());
    sockaddr_in place{};
    REQUIRE(peer.address.size() == sizeof place);
    std::memcpy(&place, peer.address.data(), sizeof place);
    mute = true;
    b.reset();
    mute = false;
    b = open("b", ntohs(place.sin_port));
  }
  std::unique_ptr<Exchange> open(const std::string& node, std::uint16_t port = 0) {
    ExchangeOptions options;
    options.key_file = key.path();
    options.node = node;
    options.server = &server;
    options.transports = {[&](Transport::Receiver receiver) -> Result<std::unique_ptr<Transport>> {
      WEFT_TRY(auto real, open_fabric_transport({provider, "127.0.0.1", port, std::move(receiver)}));
      return std::unique_ptr<Transport>(
          std::make_unique<TappedTransport>(std::move(real), [this](auto) { return !mute; }));
    }};
    return testing::must(Exchange::open(options));
  }
  const std::string provider;
  const KeyFile key;
  ScriptedServer server;
  std::atomic<bool> mute{false};
  std::unique_ptr<Exchange> a, b;
  PeerAddress peer;
};

TEST_CASE("a session that the peer lost is replaced") {
  for (const std::string& provider : testing::tcp_providers_with_datagrams()) {
    CAPTURE(provider);
    OpenedAnew on(provider);
    const auto answer = ask(*on.a, on.peer, "echo again");
    REQUIRE(answer.ok());
    CHECK(as_text((*answer)->head()) == "a again");
  }
}

TEST_CASE("a session that the peer lost is replaced, also for begun calls") {
  for (const std::string& provider : testing::tcp_providers_with_datagrams()) {
    CAPTURE(provider);
    OpenedAnew on(provider);
    std::vector<BegunCall> calls;
    for (int i = 0; i < 20; ++i) calls.push_back(begin(*on.a, on.peer, "echo again"));
    for (BegunCall& call : calls) {
      const auto answer = outcome_of(call);
      REQUIRE(answer.ok());
      CHECK(as_text((*answer)->head()) == "a again");
    }
    CHECK(on.a->figures().handshakes == 2);
  }
}

TEST_CASE("a session that the peer lost is replaced, also for calls with short deadlines") {
  for (const std::string& provider : testing::tcp_providers_with_datagrams()) {
    CAPTURE(provider);
    OpenedAnew on(provider);
    CHECK(comes_true([&] { return ask(*on.a, on.peer, "echo again", Clock::now() + 400ms).ok(); }));
  }
}

TEST_CASE("a call to an address without a node ends at its deadline") {
  in_every_world_at_once([](TransportWorld& world) {
    const KeyFile key;
    auto a = open_node(world, key, "a", nullptr);
    PeerAddress gone;
    {
      auto b = open_node(world, key, "b", nullptr);
      gone = at(*b, "b");
    }
    const auto begun = Clock::now();
    const auto answer = ask(*a, gone, "echo", begun + 700ms);
    REQUIRE(!answer.ok());
    CHECK((answer.error().code == Errc::timed_out || answer.error().code == Errc::unreachable));
    CHECK(a->figures().sessions == 0);
  });
}

// A network of twins that can stop a node, as SIGSTOP stops a process.
struct Stoppable {
  net::TwinNetwork network;
  KeyFile key;
  ScriptedServer server;
  std::unique_ptr<Exchange> open(const std::string& node) {
    ExchangeOptions options;
    options.node = node;
    options.key_file = key.path();
    options.server = &server;
    options.transports = {[&](Transport::Receiver receiver) -> Result<std::unique_ptr<Transport>> {
      return network.open(std::move(receiver));
    }};
    return testing::must(Exchange::open(options));
  }
};

TEST_CASE("a peer that is stopped costs a deadline, its buffers are set aside, and it is there again when it goes on") {
  Stoppable world;
  auto a = world.open("a");
  auto b = world.open("b");
  auto answer = ask(*a, at(*b, "b"), "bytes");
  REQUIRE(answer.ok());
  world.network.stop(b->endpoints().front().address);
  {
    const LandingBuffer buffer = testing::must(a->landing(soon()));
    const WindowRead read = testing::must((*answer)->read(0, 0, buffer.landing(), 0, 4096));
    CHECK(read->wait(Clock::now() + 50ms).error().code == Errc::timed_out);
  }
  CHECK(a->figures().buffers_aside == 1);
  CHECK(a->landing(soon()).ok());  // another buffer
  CHECK(ask(*a, at(*b, "b"), "echo", Clock::now() + 100ms).error().code == Errc::timed_out);
  const auto begun = Clock::now();
  CHECK(!ask(*a, at(*b, "b"), "echo", begun + 3s).ok());
  world.network.go_on(b->endpoints().front().address);
  CHECK(comes_true([&] { return a->figures().buffers_aside == 0; }));
  CHECK(ask(*a, at(*b, "b"), "echo").ok());
}

TEST_CASE("a begun call to a peer that is stopped ends, and succeeds when the peer goes on") {
  Stoppable world;
  auto a = world.open("a");
  auto b = world.open("b");
  REQUIRE(ask(*a, at(*b, "b"), "echo").ok());
  world.network.stop(b->endpoints().front().address);
  std::vector<BegunCall> calls;  // more than the transport takes at once
  for (int i = 0; i < 100; ++i) calls.push_back(begin(*a, at(*b, "b"), "echo", 600ms));
  for (BegunCall& call : calls) CHECK(outcome_of(call).error().code == Errc::timed_out);
  auto call = begin(*a, at(*b, "b"), "echo");
  world.network.go_on(b->endpoints().front().address);
  CHECK(outcome_of(call).ok());
}

TEST_CASE("a peer that stops during a handshake does not keep others from theirs") {
  Stoppable world;
  auto a = world.open("a");
  auto b = world.open("b");
  auto c = world.open("c");
  world.network.stop(b->endpoints().front().address);
  std::thread waiting([&] { CHECK(!ask(*a, at(*b, "b"), "echo", Clock::now() + 2s).ok()); });
  CHECK(ask(*a, at(*c, "c"), "echo").ok());
  waiting.join();
  world.network.go_on(b->endpoints().front().address);
  CHECK(ask(*a, at(*b, "b"), "echo").ok());
}

TEST_CASE("a key file that others can read, or that is too short, is refused") {
  const KeyFile key;
  ExchangeOptions options;
  options.node = "a";
  options.key_file = key.path();
  for (const unsigned mode : {0640U, 0604U, 0620U}) {
    key.set_mode(mode);
    CHECK(Exchange::open(options).error().code == Errc::permission);
  }
  key.set_mode(0400);
  CHECK(Exchange::open(options).ok());
  testing::TempDir directory;
  options.key_file = directory / "short";
  testing::write_file(options.key_file, std::string(31, 'k'));
  CHECK(!Exchange::open(options).ok());
  options.key_file = directory / "missing";
  CHECK(Exchange::open(options).error().code == Errc::not_found);
  options.key_file = key.path();
  options.provider = "shm";
  CHECK(Exchange::open(options).error().code == Errc::unsupported);
}

}  // namespace
}  // namespace weft
