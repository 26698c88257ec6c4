// The guarantees of weft/cluster/transport.h, for every transport. Memory of windows is declared before the transports,
// because it has to outlive them.
#include "weft/cluster/transport.h"

#include <doctest/doctest.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>
#include <utility>

#include "net/transport/provider.h"
#include "raw_peer.h"
#include "testing.h"
#include "transport_worlds.h"
#include "weft/bytes/window_memory.h"

namespace weft {
namespace {

using conformance::in_every_world;
using conformance::TransportWorld;
using testing::random_bytes;
using Clock = PendingRead::Clock;
using namespace std::chrono_literals;

constexpr auto kPatience = 10s;  // how long a broken transport makes a test wait; a working one answers at once

// Received messages in order. Any thread.
class Inbox {
 public:
  Transport::Receiver receiver() {
    return [this](std::span<const std::byte> message) {
      {
        const std::lock_guard lock(mutex_);
        messages_.emplace_back(message.begin(), message.end());
      }
      came_.notify_all();
    };
  }
  std::vector<std::vector<std::byte>> wait_for(std::size_t count) {
    std::unique_lock lock(mutex_);
    came_.wait_for(lock, kPatience, [&] { return messages_.size() >= count; });
    return messages_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable came_;
  std::vector<std::vector<std::byte>> messages_;
};

// Sends a message, and repeats it while the transport is busy.
void send_surely(Transport& from, PeerId to, std::span<const std::byte> message) {
  const auto deadline = Clock::now() + kPatience;
  for (;;) {
    const Status sent = from.send(to, message);
    if (sent.ok()) return;
    REQUIRE(sent.error().code == Errc::busy);
    REQUIRE(Clock::now() < deadline);
    std::this_thread::sleep_for(1ms);
  }
}

PeerId peer_of(Transport& transport, const Transport& other) {
  auto peer = transport.add_peer(other.address());
  REQUIRE(peer.ok());
  return *peer;
}

// Memory that a transport reads into.
struct Target {
  Target(Transport& transport, std::size_t size) : memory(std::make_shared<std::vector<std::byte>>(size)) {
    auto opened = transport.open_landing(*memory, memory);
    REQUIRE(opened.ok());
    landing = std::move(*opened);
  }
  std::shared_ptr<std::vector<std::byte>> memory;
  std::shared_ptr<Landing> landing;
};

Status read_now(Transport& transport, PeerId peer, const RemoteWindow& window, std::uint64_t offset, Target& target,
                std::size_t at, std::size_t length) {
  WEFT_TRY(auto pending, transport.read(peer, window, offset, target.landing, at, length));
  return pending->wait(Clock::now() + kPatience);
}

TEST_CASE("messages arrive whole, in order and once, whatever their size") {
  in_every_world([](TransportWorld& world) {
    Inbox inbox;
    auto receiver = world.open(inbox.receiver());
    auto sender = world.open({});
    const PeerId peer = peer_of(*sender, *receiver);
    std::vector<std::vector<std::byte>> sent;
    for (unsigned i = 0; i < 300; ++i) sent.push_back(random_bytes(1 + (i * 7919) % 4000, i));
    sent.push_back(random_bytes(kMessageBytesMax, 1));
    sent.push_back(random_bytes(1, 2));
    for (const auto& message : sent) send_surely(*sender, peer, message);
    CHECK(inbox.wait_for(sent.size()) == sent);
    CHECK(receiver->counters().messages_received == sent.size());
  });
}

TEST_CASE("a receiver may answer, and several peers talk at once") {
  in_every_world([](TransportWorld& world) {
    constexpr unsigned kPeers = 4;
    constexpr unsigned kRounds = 50;
    Transport* echo = nullptr;
    std::array<PeerId, kPeers> back{};
    auto server = world.open([&](std::span<const std::byte> message) {
      const auto who = std::to_integer<std::size_t>(message[0]);
      CHECK(echo->send(back.at(who), message).ok());
    });
    echo = server.get();
    std::array<Inbox, kPeers> inboxes;
    std::vector<std::unique_ptr<Transport>> clients;
    for (unsigned i = 0; i < kPeers; ++i) {
      clients.push_back(world.open(inboxes.at(i).receiver()));
      back.at(i) = peer_of(*server, *clients[i]);
    }
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < kPeers; ++i)
      threads.emplace_back([&, i] {
        const PeerId peer = peer_of(*clients[i], *server);
        for (unsigned round = 0; round < kRounds; ++round) {
          const std::array message{static_cast<std::byte>(i), static_cast<std::byte>(round)};
          send_surely(*clients[i], peer, message);
          inboxes.at(i).wait_for(round + 1);
        }
      });
    for (std::thread& thread : threads) thread.join();
    for (Inbox& inbox : inboxes) CHECK(inbox.wait_for(kRounds).size() == kRounds);
  });
}

TEST_CASE("a deferred task of a receiver does not block other messages, and runs once or is refused") {
  in_every_world([](TransportWorld& world) {
    constexpr std::size_t kMessages = 4;
    std::promise<void> all_came;
    const std::shared_future<void> came = all_came.get_future().share();
    std::atomic<std::size_t> heard = 0, left = 0, ran = 0, in_vain = 0;
    Transport* receives = nullptr;
    const auto two = world.open([&](std::span<const std::byte>) {
      const auto later = [&] {
        if (came.wait_for(kPatience) != std::future_status::ready) ++in_vain;
        ++ran;
      };
      if (receives->after_receiving(later)) ++left;
      if (++heard == kMessages) all_came.set_value();
    });
    receives = two.get();
    const auto one = world.open({});
    const PeerId to = peer_of(*one, *two);
    for (std::size_t i = 0; i < kMessages; ++i) send_surely(*one, to, random_bytes(100, 1));
    REQUIRE(came.wait_for(kPatience) == std::future_status::ready);
    const auto deadline = Clock::now() + kPatience;
    while (ran < left && Clock::now() < deadline) std::this_thread::sleep_for(1ms);
    CHECK(ran == left);
    CHECK(in_vain == 0);
    CHECK(left < kMessages);
    CHECK_FALSE(two->after_receiving([] {}));  // called outside of a receiver
  });
}

TEST_CASE("messages of no bytes or too many are refused") {
  in_every_world([](TransportWorld& world) {
    auto a = world.open({});
    const PeerId self = peer_of(*a, *world.open({}));
    CHECK(a->send(self, {}).error().code == Errc::invalid);
    CHECK(a->send(self, random_bytes(kMessageBytesMax + 1, 0)).error().code == Errc::invalid);
  });
}

TEST_CASE("addresses that are none are refused") {
  in_every_world([](TransportWorld& world) {
    auto a = world.open({});
    CHECK(a->add_peer({}).error().code == Errc::invalid);
    CHECK(a->add_peer(random_bytes(3, 0)).error().code == Errc::invalid);
    CHECK(a->add_peer(random_bytes(4096, 0)).error().code == Errc::invalid);
    CHECK(a->send(12345, random_bytes(1, 0)).error().code == Errc::unreachable);
  });
}

TEST_CASE("a read brings the window's bytes to their place and touches nothing else") {
  in_every_world([](TransportWorld& world) {
    const auto source = random_bytes(3U << 20U, 7);
    auto holder = world.open({});
    auto reader = world.open({});
    const PeerId peer = peer_of(*reader, *holder);
    auto window = holder->open_window(source);
    REQUIRE(window.ok());
    const RemoteWindow remote = (*window)->remote();
    CHECK(remote.length == source.size());
    struct Part {
      std::uint64_t offset;
      std::size_t length;
    };
    for (const Part part : {Part{0, 1}, Part{0, 4096}, Part{1, 63}, Part{4095, 2}, Part{(1U << 20U) - 1, 1U << 20U},
                            Part{source.size() - 1, 1}, Part{0, source.size()}}) {
      CAPTURE(part.offset);
      Target target(*reader, part.length + 32);
      std::fill(target.memory->begin(), target.memory->end(), std::byte{0xA5});
      REQUIRE(read_now(*reader, peer, remote, part.offset, target, 16, part.length).ok());
      const std::span<const std::byte> got(*target.memory);
      const auto wanted = std::span(source).subspan(part.offset, part.length);
      CHECK(std::equal(wanted.begin(), wanted.end(), got.begin() + 16));
      const auto untouched = [](std::byte value) { return value == std::byte{0xA5}; };
      CHECK(std::all_of(got.begin(), got.begin() + 16, untouched));
      CHECK(std::all_of(got.end() - 16, got.end(), untouched));
    }
    CHECK(reader->counters().reads_done == 7);
  });
}

TEST_CASE("many reads are in flight at once, from several threads") {
  in_every_world([](TransportWorld& world) {
    constexpr std::size_t kPiece = 64U << 10U;
    constexpr std::size_t kPieces = 600;  // more than a provider accepts at once
    const auto source = random_bytes(kPiece * kPieces, 3);
    auto holder = world.open({});
    auto reader = world.open({});
    const PeerId peer = peer_of(*reader, *holder);
    auto window = holder->open_window(source);
    REQUIRE(window.ok());
    const RemoteWindow remote = (*window)->remote();
    Target target(*reader, source.size());
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < 2; ++t)
      threads.emplace_back([&, t] {
        std::vector<std::unique_ptr<PendingRead>> pending;
        for (std::size_t i = t; i < kPieces; i += 2) {
          auto read = reader->read(peer, remote, i * kPiece, target.landing, i * kPiece, kPiece);
          REQUIRE(read.ok());
          pending.push_back(std::move(*read));
        }
        for (auto& read : pending) CHECK(read->wait(Clock::now() + kPatience).ok());
      });
    for (std::thread& thread : threads) thread.join();
    CHECK(*target.memory == source);
    CHECK(reader->counters().reads_done == kPieces);
  });
}

TEST_CASE("windows open and close on every thread while others are read") {
  in_every_world([](TransportWorld& world) {
    auto holder = world.open({});
    auto reader = world.open({});
    const PeerId peer = peer_of(*reader, *holder);
    const auto content = random_bytes(100'000, 1);
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 6; ++thread)
      threads.emplace_back([&] {
        Target target(*reader, content.size());
        for (int round = 0; round < 500; ++round) {
          auto window = holder->open_window(content);
          const bool ok =
              window.ok() && read_now(*reader, peer, (*window)->remote(), 0, target, 0, content.size()).ok();
          if (!ok || *target.memory != content) ++wrong;
          if (wrong > 0) return;
        }
      });
    for (std::thread& thread : threads) thread.join();
    CHECK(wrong == 0);
  });
}

TEST_CASE("ranges that do not fit are refused before anything is sent") {
  in_every_world([](TransportWorld& world) {
    const auto source = random_bytes(4096, 1);
    auto holder = world.open({});
    auto reader = world.open({});
    const PeerId peer = peer_of(*reader, *holder);
    auto window = holder->open_window(source);
    REQUIRE(window.ok());
    const RemoteWindow remote = (*window)->remote();
    Target target(*reader, 4096);
    const auto code = [&](std::uint64_t offset, std::size_t at, std::size_t length) {
      return reader->read(peer, remote, offset, target.landing, at, length).error().code;
    };
    CHECK(code(0, 0, 0) == Errc::invalid);
    CHECK(code(0, 1, 4096) == Errc::invalid);
    CHECK(code(0, ~std::size_t{0}, 2) == Errc::invalid);
    CHECK(code(1, 0, 4096) == Errc::permission);
    CHECK(code(~std::uint64_t{0}, 0, 2) == Errc::permission);
    CHECK(!holder->open_window({}).ok());
    CHECK(!reader->open_landing({}, nullptr).ok());
  });
}

TEST_CASE("a wrong key, a range past the window and a closed window give nothing, and later reads go on") {
  in_every_world([](TransportWorld& world) {
    const auto source = random_bytes(8192, 5);
    auto holder = world.open({});
    auto reader = world.open({});
    const PeerId peer = peer_of(*reader, *holder);
    auto window = holder->open_window(source);
    auto closed = holder->open_window(source);
    REQUIRE(window.ok());
    REQUIRE(closed.ok());
    const RemoteWindow remote = (*window)->remote();
    RemoteWindow forged = remote;
    forged.key ^= 0x5555;
    RemoteWindow stretched = remote;
    stretched.length = 1U << 20U;
    const RemoteWindow gone = (*closed)->remote();
    closed->reset();
    for (const RemoteWindow& bad : {forged, stretched, gone}) {
      Target target(*reader, 16384);
      CHECK(!read_now(*reader, peer, bad, 0, target, 0, 16384 <= bad.length ? 16384 : 8192).ok());
      CHECK(std::all_of(target.memory->begin(), target.memory->end(), [](std::byte b) { return b == std::byte{0}; }));
    }
    Target target(*reader, 8192);
    // A provider may drop the connection after a bad key. It connects again.
    const auto deadline = Clock::now() + kPatience;
    Status again = read_now(*reader, peer, remote, 0, target, 0, 8192);
    for (; !again.ok() && Clock::now() < deadline; std::this_thread::sleep_for(10ms))
      again = read_now(*reader, peer, remote, 0, target, 0, 8192);
    CHECK(again.ok());
    CHECK(*target.memory == source);
  });
}

TEST_CASE("a window is read only: whoever has its key cannot write to it") {
  for (const std::string& provider : conformance::providers_with_connections()) {
    CAPTURE(provider);
    const std::vector<std::byte> content = random_bytes(4096, 5);
    std::vector<std::byte> memory = content;
    const auto holder = conformance::open_over(provider, {});
    auto window = holder->open_window(memory);
    REQUIRE(window.ok());
    auto forged = random_bytes(64, 6);
    conformance::RawPeer writer(provider, conformance::test_host(), *holder);
    CHECK_FALSE(writer.write((*window)->remote(), forged));
    CHECK(memory == content);
    // Other peers are not affected.
    const auto reader = conformance::open_over(provider, {});
    Target target(*reader, 4096);
    REQUIRE(read_now(*reader, peer_of(*reader, *holder), (*window)->remote(), 0, target, 0, 4096).ok());
    CHECK(*target.memory == content);
  }
}

TEST_CASE("unmapped memory with a closed window cannot be read") {
  in_every_world([](TransportWorld& world) {
    constexpr std::size_t kSize = 1U << 16U;
    auto memory = WindowMemory::of_bytes(random_bytes(kSize, 1));
    REQUIRE(memory.ok());
    auto holder = world.open({});
    auto reader = world.open({});
    const PeerId peer = peer_of(*reader, *holder);
    auto window = holder->open_window((*memory)->bytes());
    REQUIRE(window.ok());
    const RemoteWindow remote = (*window)->remote();
    Target before(*reader, kSize);
    REQUIRE(read_now(*reader, peer, remote, 0, before, 0, kSize).ok());
    window->reset();
    memory->reset();
    Target after(*reader, kSize);
    CHECK(!read_now(*reader, peer, remote, 0, after, 0, kSize).ok());
    CHECK(std::all_of(after.memory->begin(), after.memory->end(), [](std::byte b) { return b == std::byte{0}; }));
  });
}

TEST_CASE("the key of a window cannot be derived from the keys of other windows") {
  in_every_world([](TransportWorld& world) {
    const auto source = random_bytes(4096, 5);
    auto holder = world.open({});
    std::vector<std::unique_ptr<Window>> windows;
    std::vector<std::uint64_t> keys;
    for (int i = 0; i < 64; ++i) {
      auto window = holder->open_window(source);
      REQUIRE(window.ok());
      keys.push_back((*window)->remote().key);
      windows.push_back(std::move(*window));
    }
    std::sort(keys.begin(), keys.end());
    const std::uint64_t apart = world.makes_keys() ? 1U << 20U : 0;  // hardware chooses its own keys (weftd.8)
    for (std::size_t i = 1; i < keys.size(); ++i) CHECK(keys[i] - keys[i - 1] > apart);
  });
}

TEST_CASE("memory withdrawn during a send does not block later messages") {
  in_every_world([](TransportWorld& world) {
    constexpr std::size_t kMoreThanASocketTakes = 48U << 20U;
    auto memory = WindowMemory::of_bytes(random_bytes(kMoreThanASocketTakes, 1));
    REQUIRE(memory.ok());
    Inbox inbox;
    std::promise<void> hears;
    std::promise<void> go_on;
    auto holder = world.open({});
    auto reader = world.open([&, heard = false](std::span<const std::byte> message) mutable {
      if (!std::exchange(heard, true)) {  // until it continues, nothing is read from the socket
        hears.set_value();
        go_on.get_future().wait();
      }
      inbox.receiver()(message);
    });
    const PeerId to_reader = peer_of(*holder, *reader);
    const PeerId to_holder = peer_of(*reader, *holder);
    auto window = holder->open_window((*memory)->bytes());
    REQUIRE(window.ok());
    send_surely(*holder, to_reader, random_bytes(8, 1));
    hears.get_future().wait();
    Target target(*reader, kMoreThanASocketTakes);
    auto pending = reader->read(to_holder, (*window)->remote(), 0, target.landing, 0, kMoreThanASocketTakes);
    std::this_thread::sleep_for(200ms);  // by now a part is sent and the socket is full
    window->reset();
    (*memory)->withdraw();
    go_on.set_value();
    if (pending.ok()) static_cast<void>((*pending)->wait(Clock::now() + kPatience));
    const auto last = random_bytes(8, 2);
    send_surely(*holder, to_reader, last);
    const auto came = inbox.wait_for(2);
    REQUIRE(came.size() == 2);
    CHECK(came.back() == last);
  });
}

TEST_CASE("a peer that dies ends its reads or leaves them set aside; the others go on") {
  in_every_world([](TransportWorld& world) {
    const auto source = random_bytes(1U << 20U, 9);
    auto reader = world.open({});
    auto alive = world.open({});
    auto window = alive->open_window(source);
    REQUIRE(window.ok());
    const PeerId good = peer_of(*reader, *alive);
    PeerId dead = 0;
    RemoteWindow dead_window;
    {
      auto dying = world.open({});
      auto its = dying->open_window(source);
      REQUIRE(its.ok());
      dead = peer_of(*reader, *dying);
      dead_window = (*its)->remote();
      Target target(*reader, source.size());
      REQUIRE(read_now(*reader, dead, dead_window, 0, target, 0, source.size()).ok());
    }
    Target lost(*reader, source.size());
    auto pending = reader->read(dead, dead_window, 0, lost.landing, 0, source.size());
    if (pending.ok()) CHECK(!(*pending)->wait(Clock::now() + 300ms).ok());
    reader->remove_peer(dead);
    if (pending.ok()) CHECK((*pending)->wait(Clock::now()).error().code != Errc::timed_out);
    CHECK(reader->send(dead, random_bytes(1, 0)).error().code == Errc::unreachable);
    Target target(*reader, source.size());
    CHECK(read_now(*reader, good, (*window)->remote(), 0, target, 0, source.size()).ok());
    CHECK(*target.memory == source);
  });
}

TEST_CASE("a transport without work does not use the processor") {
  in_every_world([](TransportWorld& world) {
    auto a = world.open({});
    auto b = world.open({});
    const PeerId peer = peer_of(*a, *b);
    send_surely(*a, peer, random_bytes(8, 0));
    std::this_thread::sleep_for(50ms);
    const auto used_us = [] {
      rusage usage{};
      ::getrusage(RUSAGE_SELF, &usage);
      return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1'000'000L + usage.ru_utime.tv_usec +
             usage.ru_stime.tv_usec;
    };
    const long before = used_us();
    std::this_thread::sleep_for(1s);
    CHECK(used_us() - before < 300'000);  // a busy loop would use the whole second
  });
}

TEST_CASE("a provider that cannot be waited for, or is not to be used, is refused with the reason") {
  for (const char* provider : {"shm", "sockets", "udp;ofi_rxd", "no-such-provider"}) {
    CAPTURE(provider);
    TransportOptions options;
    options.provider = provider;
    const auto opened = open_fabric_transport(options);
    REQUIRE(!opened.ok());
    CHECK(opened.error().code == Errc::unsupported);
    CHECK(opened.error().message.find(provider) != std::string::npos);
    const std::string reason = std::string_view(provider) == "shm"       ? "a completion queue that can be waited for"
                               : std::string_view(provider) == "sockets" ? "never used"
                                                                         : "";
    CHECK(opened.error().message.find(reason) != std::string::npos);
  }
}

// Hardware first, then the newer one of libfabric's two providers over TCP.
TEST_CASE("providers are tried from the best on, and sockets never") {
  const std::vector<std::string_view> expected{"verbs", "efa", "cxi", "psm3", "psm2", "net", "tcp"};
  const auto order = net::provider_order();
  CHECK(std::vector<std::string_view>(order.begin(), order.end()) == expected);
}

TEST_CASE("auto takes the best provider that works here") {
  const auto opened = open_fabric_transport({});
  REQUIRE(opened.ok());
  const auto order = net::provider_order();
  const auto best = std::find(order.begin(), order.end(), conformance::best_provider());
  CHECK((*opened)->provider() == *best);
  const auto passed_over = (*opened)->passed_over();
  REQUIRE(passed_over.size() == best - order.begin());
  for (std::size_t i = 0; i < passed_over.size(); ++i) {
    CHECK(passed_over[i].provider == order[i]);
    CHECK(passed_over[i].reason.find(order[i]) != std::string::npos);
  }
}

}  // namespace
}  // namespace weft
