// Calls that no thread waits for, for every transport.
#include <algorithm>

#include "base/limits.h"
#include "exchange_support.h"
#include "net/calls/begun_calls.h"

namespace weft {
namespace {

using namespace conformance;
using namespace std::chrono_literals;
using testing::as_text;

// Returns the address of a node that has ended.
PeerAddress gone(TransportWorld& world, const KeyFile& key, const std::string& node) {
  const auto ended = open_node(world, key, node, nullptr);
  return at(*ended, node);
}

TEST_CASE("a begun call brings its answer on a thread of the exchange, with windows that are read afterwards") {
  in_every_world([](TransportWorld& world) {
    const KeyFile key;
    ScriptedServer server;
    auto a = open_node(world, key, "a", nullptr);
    auto b = open_node(world, key, "b", &server);
    std::promise<std::thread::id> reported;
    auto reporter = reported.get_future();
    a->begin(at(*b, "b"), testing::as_bytes("echo one"), kPatience, [&](Result<std::unique_ptr<Answer>> outcome) {
      CHECK(as_text(testing::must(std::move(outcome))->head()) == "a one");
      reported.set_value(std::this_thread::get_id());
    });
    CHECK(reporter.get() != std::this_thread::get_id());
    auto call = begin(*a, at(*b, "b"), "bytes");
    auto answer = outcome_of(call);
    REQUIRE(answer.ok());
    CHECK(b->figures().windows == 1);
    const auto got = read_all(*a, **answer);
    REQUIRE(got.ok());
    CHECK(*got == server.content);
    answer->reset();
    CHECK(comes_true([&] { return b->figures().windows == 0; }));
    auto long_head = begin(*a, at(*b, "b"), "head");
    CHECK(as_text((*outcome_of(long_head))->head()) == as_text(server.content));
    CHECK(a->figures().begun == 0);
    CHECK(a->figures().handshakes == 1);
  });
}

TEST_CASE("an error of the server reaches the begun call unchanged, and a wrong call fails at once") {
  in_every_world([](TransportWorld& world) {
    const KeyFile key;
    ScriptedServer server;
    auto a = open_node(world, key, "a", nullptr);
    auto b = open_node(world, key, "b", &server);
    const auto fails = [&](const PeerAddress& peer, std::string_view request) {
      auto call = begin(*a, peer, request);
      const auto outcome = outcome_of(call);
      REQUIRE(!outcome.ok());
      return outcome.error();
    };
    CHECK(fails(at(*b, "b"), "fail").code == Errc::not_found);
    CHECK(fails(at(*b, "b"), "fail").message == "no such thing");
    CHECK(fails(at(*b, "b"), std::string(kRequestBytesMax + 1, 'x')).code == Errc::invalid);
    CHECK(fails(at(*a, "a"), "echo").code == Errc::invalid);
    CHECK(fails(at(*b, "c"), "echo").code == Errc::permission);
    PeerAddress other = at(*b, "b");
    other.provider = "no such provider";
    CHECK(fails(other, "echo").code == Errc::unsupported);
  });
}

TEST_CASE("an outcome may begin the next call") {
  in_every_world([](TransportWorld& world) {
    const KeyFile key;
    ScriptedServer server;
    auto a = open_node(world, key, "a", nullptr);
    auto b = open_node(world, key, "b", &server);
    std::atomic<int> good{0};
    std::promise<void> end;
    std::function<void()> next = [&] {
      a->begin(at(*b, "b"), testing::as_bytes("echo"), kPatience, [&](Result<std::unique_ptr<Answer>> outcome) {
        good += outcome.ok() ? 1 : 0;
        if (outcome.ok() && good < 200) return next();
        end.set_value();
      });
    };
    next();
    end.get_future().get();
    CHECK(good == 200);
  });
}

TEST_CASE("of ten thousand begun calls to one peer each has an outcome, and those beyond the limits are refused") {
  in_every_world([](TransportWorld& world) {
    constexpr int kCalls = 10'000;
    const KeyFile key;
    LaterServer server;
    auto a = open_node(world, key, "a", nullptr);
    auto b = open_node(world, key, "b", &server);
    std::atomic<int> good{0}, busy{0}, other{0};
    for (int i = 0; i < kCalls; ++i)
      a->begin(at(*b, "b"), testing::as_bytes("later"), kPatience * 6, [&](Result<std::unique_ptr<Answer>> outcome) {
        ++(outcome.ok() ? good : outcome.error().code == Errc::busy ? busy : other);
      });
    CHECK(a->figures().begun <= limits::kBegunCallsEachMax);
    CHECK(comes_true([&] { return busy >= kCalls - static_cast<int>(limits::kPeerPendingEachMax); }));
    CHECK(good == 0);
    CHECK(comes_true([&] {
      for (PendingReply& reply : server.take()) reply.give(PeerReply{});
      return good + busy + other == kCalls;
    }));
    CHECK(good >= 1);
    CHECK(other == 0);
    CHECK(a->figures().begun == 0);
    CHECK(ask(*a, at(*b, "b"), "echo").ok());
    CHECK(a->figures().handshakes == 1);
  });
}

TEST_CASE("begun calls to addresses without a node end, however many they are, and do not delay calls to others") {
  in_every_world_at_once([](TransportWorld& world) {
    const KeyFile key;
    ScriptedServer server;
    auto a = open_node(world, key, "a", nullptr);
    auto b = open_node(world, key, "b", &server);
    REQUIRE(ask(*a, at(*b, "b"), "echo").ok());
    std::vector<BegunCall> calls;
    for (unsigned i = 0; i < 3 * net::BegunCalls::kConnectingThreads; ++i) {
      const PeerAddress nobody = gone(world, key, "n" + std::to_string(i));
      for (int twice = 0; twice < 2; ++twice) calls.push_back(begin(*a, nobody, "echo", 1s));
    }
    auto call = begin(*a, at(*b, "b"), "echo");
    CHECK(outcome_of(call).ok());
    for (BegunCall& each : calls) {
      const auto outcome = outcome_of(each);
      REQUIRE(!outcome.ok());
      CHECK((outcome.error().code == Errc::timed_out || outcome.error().code == Errc::unreachable));
    }
    CHECK(a->figures().begun == 0);
    CHECK(a->figures().sessions == 1);
  });
}

TEST_CASE("begun calls end with their exchange, also those that wait for a connection") {
  in_every_world([](TransportWorld& world) {
    const KeyFile key;
    LaterServer server;
    auto a = open_node(world, key, "a", nullptr);
    auto b = open_node(world, key, "b", &server);
    auto waiting = begin(*a, at(*b, "b"), "later", std::chrono::hours(1));
    REQUIRE(server.keeps(1));
    auto connecting = begin(*a, gone(world, key, "c"), "echo", std::chrono::hours(1));
    std::promise<Errc> late;
    a->begin(at(*b, "b"), testing::as_bytes("later"), std::chrono::hours(1),
             [&, from = a.get(), peer = at(*b, "b")](const Result<std::unique_ptr<Answer>>& first) {
               CHECK(!first.ok());
               from->begin(peer, testing::as_bytes("echo"), kPatience,
                           [&](const Result<std::unique_ptr<Answer>>& second) { late.set_value(second.error().code); });
             });
    REQUIRE(server.keeps(2));
    a.reset();
    REQUIRE(is_over(waiting));
    REQUIRE(is_over(connecting));
    CHECK(waiting.get().error().code == Errc::cancelled);
    CHECK(!connecting.get().ok());
    CHECK(late.get_future().get() == Errc::cancelled);
  });
}

TEST_CASE("a begun call waits for a slow answer as long as its patience, and no longer") {
  in_every_world_at_once([](TransportWorld& world) {
    const KeyFile key;
    LaterServer server;
    auto a = open_node(world, key, "a", nullptr);
    auto b = open_node(world, key, "b", &server);
    auto call = begin(*a, at(*b, "b"), "later", 2500ms);
    CHECK(outcome_of(call).error().code == Errc::timed_out);
    CHECK(a->figures().handshakes == 1);  // b stayed alive, so no second handshake
    CHECK(server.is_told());
  });
}

TEST_CASE("answers of the peer move the deadline of a begun call") {
  in_every_world_at_once([](TransportWorld& world) {
    const KeyFile key;
    LaterServer server;
    auto a = open_node(world, key, "a", nullptr);
    auto b = open_node(world, key, "b", &server);
    REQUIRE(ask(*a, at(*b, "b"), "echo").ok());
    const auto begun = Clock::now();
    auto call = begin(*a, at(*b, "b"), "later", 3s);
    REQUIRE(server.keeps(1));
    bool good = true;
    CHECK(comes_true([&] {
      good = good && ask(*a, at(*b, "b"), "echo").ok();
      return Clock::now() >= begun + 4s;
    }));
    CHECK(good);
    CHECK(!is_over(call));
    server.take().front().give(PeerReply{});
    CHECK(outcome_of(call).ok());
  });
}

TEST_CASE("a lost request or answer of a begun call is repeated") {
  in_every_world([](TransportWorld& world) {
    survives_lost_messages(world, [](Exchange& from, const PeerAddress& peer) {
      auto call = begin(from, peer, "bytes");
      return outcome_of(call);
    });
  });
}

TEST_CASE("a begun call whose request is repeated by an attacker goes on in a new session") {
  in_every_world([](TransportWorld& world) {
    const KeyFile key;
    LaterServer server;
    std::atomic<bool> repeat{false};
    auto a = open_node(world, key, "a", nullptr, [&](auto) { return repeat.exchange(false) ? 2 : 1; });
    auto b = open_node(world, key, "b", &server);
    REQUIRE(ask(*a, at(*b, "b"), "echo").ok());
    repeat = true;
    auto call = begin(*a, at(*b, "b"), "later");  // the first reply is never given, so the session ends before
    CHECK(server.is_told());
    REQUIRE(server.keeps(1));
    server.take().front().give(PeerReply{});
    CHECK(outcome_of(call).ok());
    CHECK(a->figures().handshakes == 2);
  });
}

}  // namespace
}  // namespace weft
