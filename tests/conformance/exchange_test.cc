// The guarantees of weft/cluster/exchange.h among well-behaved nodes, for every transport.
#include "weft/cluster/exchange.h"

#include <algorithm>
#include <thread>

#include "exchange_support.h"
#include "os/sys.h"
#include "pinning_provider.h"

namespace weft {
namespace {

using namespace conformance;
using namespace std::chrono_literals;
using testing::as_text;

TEST_CASE("a call brings its answer, and each end knows who the other is") {
  in_every_world([](TransportWorld& world) {
    const KeyFile key;
    ScriptedServer server;
    auto a = open_node(world, key, "a", &server);
    auto b = open_node(world, key, "b", &server);
    for (int round = 0; round < 3; ++round) {
      const auto there = ask(*a, at(*b, "b"), "echo one");
      REQUIRE(there.ok());
      CHECK(as_text((*there)->head()) == "a one");
      const auto back = ask(*b, at(*a, "a"), "echo two");
      REQUIRE(back.ok());
      CHECK(as_text((*back)->head()) == "b two");
    }
    const ExchangeFigures figures = a->figures();
    CHECK(figures.sessions == 2);  // one in each direction, whatever the number of calls
    CHECK(figures.calls == 3);
    CHECK(figures.answers == 3);
  });
}

TEST_CASE("a window is read while the answer lives, and closed when it goes") {
  in_every_world([](TransportWorld& world) {
    const KeyFile key;
    ScriptedServer server;
    server.content = testing::random_bytes(5'000'000, 4);
    auto a = open_node(world, key, "a", nullptr);
    auto b = open_node(world, key, "b", &server);
    {
      auto answer = ask(*a, at(*b, "b"), "bytes");
      REQUIRE(answer.ok());
      REQUIRE((*answer)->windows() == 1);
      CHECK((*answer)->length(0) == server.content.size());
      CHECK(b->figures().windows == 1);
      const auto got = read_all(*a, **answer);
      REQUIRE(got.ok());
      CHECK(*got == server.content);
      const LandingBuffer buffer = testing::must(a->landing(soon()));
      CHECK((*answer)->read(1, 0, buffer.landing(), 0, 1).error().code == Errc::invalid);
      CHECK((*answer)->read(0, server.content.size(), buffer.landing(), 0, 1).error().code == Errc::permission);
    }
    CHECK(comes_true([&] { return b->figures().windows == 0; }));
    CHECK(b->figures().served_bytes == server.content.size());
    CHECK(b->figures().lease_ends == 0);
    CHECK(a->figures().read_bytes == server.content.size());
  });
}

TEST_CASE("bytes of a file are given by every provider, also by one that takes no pages of files") {
  in_every_world([](TransportWorld& world) {
    const KeyFile key;
    ScriptedServer server;
    auto a = open_node(world, key, "a", nullptr);
    auto b = open_node(world, key, "b", &server);
    auto answer = ask(*a, at(*b, "b"), "file");
    REQUIRE(answer.ok());
    const auto got = read_all(*a, **answer);
    REQUIRE(got.ok());
    CHECK(*got == server.content);
  });
}

TEST_CASE("untouched memory can be the target of a read") {
  in_every_world([](TransportWorld& world) {
    const KeyFile key;
    ScriptedServer server;
    auto a = open_node(world, key, "a", nullptr);
    auto b = open_node(world, key, "b", &server);
    const std::size_t size = server.content.size();
    const std::shared_ptr<std::byte[]> memory = std::make_unique_for_overwrite<std::byte[]>(64U << 20U);
    const auto landing = testing::must(a->register_landing({memory.get(), 64U << 20U}, memory));
    auto answer = ask(*a, at(*b, "b"), "bytes");
    REQUIRE(answer.ok());
    const WindowRead read = testing::must((*answer)->read(0, 0, landing, 40U << 20U, size));
    REQUIRE(read->wait(soon()).ok());
    CHECK(std::equal(server.content.begin(), server.content.end(), memory.get() + (40U << 20U)));
  });
}

TEST_CASE("a long head arrives complete, an error unchanged, and a request beyond the limit is refused") {
  in_every_world([](TransportWorld& world) {
    const KeyFile key;
    ScriptedServer server;
    auto a = open_node(world, key, "a", nullptr);
    auto b = open_node(world, key, "b", &server);
    const auto answer = ask(*a, at(*b, "b"), "head");
    REQUIRE(answer.ok());
    CHECK(std::equal((*answer)->head().begin(), (*answer)->head().end(), server.content.begin(), server.content.end()));
    CHECK((*answer)->windows() == 0);
    const auto failed = ask(*a, at(*b, "b"), "fail");
    REQUIRE(!failed.ok());
    CHECK(failed.error().code == Errc::not_found);
    CHECK(failed.error().message == "no such thing");
    CHECK(ask(*a, at(*b, "b"), std::string(kRequestBytesMax + 1, 'x')).error().code == Errc::invalid);
    CHECK(ask(*a, at(*b, "b"), std::string(kRequestBytesMax, 'x')).ok());
    CHECK(ask(*a, at(*a, "a"), "echo").error().code == Errc::invalid);
    CHECK(ask(*b, at(*a, "a"), "echo").error().code == Errc::not_found);  // a has no server
  });
}

TEST_CASE("many threads call and read at once") {
  in_every_world([](TransportWorld& world) {
    const KeyFile key;
    ScriptedServer server;
    auto a = open_node(world, key, "a", &server);
    auto b = open_node(world, key, "b", &server);
    std::atomic<int> good{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 6; ++t)
      threads.emplace_back([&, t] {
        Exchange& from = t % 2 == 0 ? *a : *b;
        const PeerAddress to = t % 2 == 0 ? at(*b, "b") : at(*a, "a");
        for (int round = 0; round < 10; ++round) {
          auto answer = ask(from, to, "bytes");
          if (!answer.ok()) continue;
          const auto got = read_all(from, **answer);
          if (got.ok() && *got == server.content) ++good;
        }
      });
    for (std::thread& thread : threads) thread.join();
    CHECK(good == 60);
    CHECK(comes_true([&] { return a->figures().windows + b->figures().windows == 0; }));
  });
}

TEST_CASE("a lost request or answer is repeated") {
  in_every_world([](TransportWorld& world) {
    survives_lost_messages(world, [](Exchange& from, const PeerAddress& peer) { return ask(from, peer, "bytes"); });
  });
}

TEST_CASE("a call waits for a slow answer until its deadline, and no longer") {
  in_every_world_at_once([](TransportWorld& world) {
    const KeyFile key;
    ScriptedServer server;
    auto a = open_node(world, key, "a", nullptr);
    auto b = open_node(world, key, "b", &server);
    REQUIRE(ask(*a, at(*b, "b"), "echo").ok());
    const auto begun = Clock::now();
    CHECK(ask(*a, at(*b, "b"), "wait", begun + 2500ms).error().code == Errc::timed_out);
    CHECK(Clock::now() - begun >= 2500ms);
    CHECK(a->figures().handshakes == 1);  // b stayed alive, so no second handshake
    server.release();
    CHECK(ask(*a, at(*b, "b"), "wait").ok());
    CHECK(server.answered == 3);
  });
}

TEST_CASE("a call that is queued behind calls that never end has no sign of life") {
  in_every_world_at_once([](TransportWorld& world) {
    const KeyFile key;
    ScriptedServer server;
    auto a = open_node(world, key, "a", nullptr);
    auto b = open_node(world, key, "b", &server);
    constexpr int kMoreThanThreads = 16;
    std::vector<std::thread> threads;
    for (int t = 0; t < kMoreThanThreads; ++t)
      threads.emplace_back([&] { CHECK(ask(*a, at(*b, "b"), "wait", Clock::now() + 60s).ok()); });
    CHECK(comes_true([&] {  // no thread of the node is left
      const int before = server.answered;
      std::this_thread::sleep_for(200ms);
      return before > 1 && server.answered == before;
    }));
    const auto queued = a->call(at(*b, "b"), testing::as_bytes("echo"), Clock::now() + 1500ms, [] { return true; });
    CHECK((!queued.ok() && queued.error().code == Errc::timed_out));
    server.release();
    for (std::thread& thread : threads) thread.join();
  });
}

TEST_CASE("calls beyond a node's limit are refused, and the node continues") {
  in_every_world([](TransportWorld& world) {
    const KeyFile key;
    ScriptedServer server;
    auto a = open_node(world, key, "a", nullptr);
    auto b = open_node(world, key, "b", &server);
    std::atomic<int> busy{0};
    std::atomic<int> good{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 80; ++t)
      threads.emplace_back([&] {
        const auto answer = ask(*a, at(*b, "b"), "wait");
        if (answer.ok()) ++good;
        if (!answer.ok() && answer.error().code == Errc::busy) ++busy;
      });
    CHECK(comes_true([&] { return busy > 0; }));
    server.release();
    for (std::thread& thread : threads) thread.join();
    CHECK(good + busy == 80);
    CHECK(good >= 64);
    CHECK(b->figures().busy >= static_cast<std::uint64_t>(busy));
    CHECK(ask(*a, at(*b, "b"), "echo").ok());
  });
}

TEST_CASE("buffers are registered once, however much is read into them") {
  in_every_world([](TransportWorld& world) {
    const KeyFile key;
    ScriptedServer server;
    server.content = testing::random_bytes(3'000'000, 6);
    auto a = open_node(world, key, "a", nullptr);
    auto b = open_node(world, key, "b", &server);
    const int before = registrations_for_reads();
    for (int round = 0; round < 30; ++round) {
      auto answer = ask(*a, at(*b, "b"), "bytes");
      REQUIRE(answer.ok());
      const auto got = read_all(*a, **answer);
      REQUIRE(got.ok());
      CHECK(*got == server.content);
    }
    CHECK(registrations_for_reads() - before <= 4);
  });
}

TEST_CASE("a caller waits for a free buffer until its deadline") {
  in_every_world([](TransportWorld& world) {
    const KeyFile key;
    auto a = open_node(world, key, "a", nullptr);
    std::vector<LandingBuffer> lent;
    for (auto buffer = a->landing(Clock::now()); buffer.ok(); buffer = a->landing(Clock::now()))
      lent.push_back(std::move(*buffer));
    CHECK(lent.size() == 16);
    CHECK(a->landing(Clock::now() + 50ms).error().code == Errc::busy);
    lent.pop_back();
    CHECK(a->landing(soon()).ok());
    CHECK(a->figures().buffers_aside == 0);
  });
}

}  // namespace
}  // namespace weft
