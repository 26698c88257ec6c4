// The end of a reply, as its server hears of it (PeerReply::ended), for every transport. The lease's end:
// exchange_faults_test.cc.
#include <atomic>

#include "exchange_support.h"

namespace weft {
namespace {

using namespace conformance;
using namespace std::chrono_literals;
using testing::as_text;
using Bytes = std::vector<std::uint64_t>;

// Two nodes. The destructor ends both, after which no reply may end.
struct Pair {
  explicit Pair(TransportWorld& world, PeerServer& server)
      : a(open_node(world, key, "a", nullptr, [this](auto) { return mute ? 0 : 1; })),
        b(open_node(world, key, "b", &server)) {}
  PeerAddress peer() const { return at(*b, "b"); }

  const KeyFile key;
  std::atomic<bool> mute{false};  // messages of the first are lost
  std::unique_ptr<Exchange> a, b;
};

TEST_CASE("a reply ends with the bytes that its reader has read, and only once") {
  in_every_world([](TransportWorld& world) {
    EndingServer server;
    const std::uint64_t length = server.scripted.content.size();
    {
      Pair on(world, server);
      auto whole = ask(*on.a, on.peer(), "bytes");
      REQUIRE(whole.ok());
      REQUIRE(read_all(*on.a, **whole).ok());
      CHECK(server.ends.now().empty());
      whole->reset();
      CHECK(server.ends.after(1) == Bytes{length});
      REQUIRE(ask(*on.a, on.peer(), "bytes").ok());  // drops the answer unread
      CHECK(server.ends.after(2) == Bytes{length, 0});
      auto twice = ask(*on.a, on.peer(), "bytes");
      REQUIRE(twice.ok());
      REQUIRE(read_all(*on.a, **twice).ok());
      REQUIRE(read_all(*on.a, **twice).ok());
      twice->reset();
      CHECK(server.ends.after(3) == Bytes{length, 0, length});
    }
    CHECK(server.ends.now() == Bytes{length, 0, length});
  });
}

TEST_CASE("a reply without windows ends when it is sent, and its head does not count") {
  in_every_world([](TransportWorld& world) {
    EndingServer server;
    {
      Pair on(world, server);
      REQUIRE(ask(*on.a, on.peer(), "echo").ok());
      CHECK(!server.ends.after(1).empty());
      REQUIRE(ask(*on.a, on.peer(), "head").ok());  // the head is read from a window
      CHECK(comes_true([&] { return on.b->figures().served_bytes == server.scripted.content.size(); }));
    }
    // The server is called twice if its answer is late.
    CHECK(server.ends.now() == Bytes(static_cast<std::size_t>(server.scripted.answered), 0));
  });
}

TEST_CASE("a later reply with a long head ends with the bytes of its other windows") {
  in_every_world([](TransportWorld& world) {
    LaterServer server;
    Ends ends;
    const auto& content = server.at_once.content;
    {
      Pair on(world, server);
      auto call = begin(*on.a, on.peer(), "later");
      REQUIRE(server.keeps(1));
      server.take().front().give(ends.recorded(reply_of(as_text(content), content)));
      auto answer = outcome_of(call);
      REQUIRE(answer.ok());
      REQUIRE(read_all(*on.a, **answer).ok());
      answer->reset();
      CHECK(ends.after(1) == Bytes{content.size()});
    }
    CHECK(ends.now() == Bytes{content.size()});
  });
}

TEST_CASE("a reply ends unread with the session of its reader") {
  in_every_world([](TransportWorld& world) {
    EndingServer server;
    {
      Pair on(world, server);
      auto answer = ask(*on.a, on.peer(), "bytes");
      REQUIRE(answer.ok());
      REQUIRE(read_all(*on.a, **answer).ok());
      on.mute = true;
      answer->reset();  // its report is lost
      on.mute = false;
      on.a.reset();  // it closes its sessions
      CHECK(server.ends.after(1) == Bytes{0});
    }
    CHECK(server.ends.now() == Bytes{0});
  });
}

TEST_CASE("a reply ends unread when its reader has restarted") {
  in_every_world([](TransportWorld& world) {
    EndingServer server;
    Pair on(world, server);
    {
      const auto answer = ask(*on.a, on.peer(), "bytes");
      REQUIRE(answer.ok());
      on.mute = true;
    }
    on.a.reset();
    const auto restarted = open_node(world, on.key, "a", nullptr);
    auto answer = ask(*restarted, on.peer(), "bytes");
    REQUIRE(answer.ok());
    CHECK(server.ends.after(1) == Bytes{0});
    REQUIRE(read_all(*restarted, **answer).ok());
    answer->reset();
    CHECK(server.ends.after(2) == Bytes{0, server.scripted.content.size()});
  });
}

TEST_CASE("a reply ends unread before its exchange has ended") {
  in_every_world([](TransportWorld& world) {
    EndingServer server;
    Pair on(world, server);
    auto answer = ask(*on.a, on.peer(), "bytes");
    REQUIRE(answer.ok());
    on.b.reset();
    CHECK(server.ends.now() == Bytes{0});
    answer->reset();
    on.a.reset();
    CHECK(server.ends.now() == Bytes{0});
  });
}

TEST_CASE("a reply that nobody wants ends unread") {
  in_every_world_at_once([](TransportWorld& world) {
    LaterServer server;
    Ends ends;
    const auto reply = [&] { return ends.recorded(reply_of("late", server.at_once.content)); };
    Pair on(world, server);
    REQUIRE(ask(*on.a, on.peer(), "echo").ok());
    auto call = begin(*on.a, on.peer(), "later", 400ms);
    REQUIRE(server.keeps(1));
    {
      auto replies = server.take();
      CHECK(outcome_of(call).error().code == Errc::timed_out);
      REQUIRE(server.is_told());
      replies.front().give(reply());
      CHECK(ends.after(1) == Bytes{0});
    }
    call = begin(*on.a, on.peer(), "later");
    REQUIRE(server.keeps(1));
    auto replies = server.take();
    on.b.reset();
    replies.front().give(reply());
    CHECK(ends.now() == Bytes{0, 0});
    on.a.reset();
    CHECK(!outcome_of(call).ok());
    CHECK(ends.now() == Bytes{0, 0});
  });
}

TEST_CASE("a reply that cannot be sent ends unread") {
  in_every_world([](TransportWorld& world) {
    LaterServer server;
    Ends ends;
    server.at_once.content.resize(kHeadBytesMax + 1);
    Pair on(world, server);
    auto call = begin(*on.a, on.peer(), "later");
    REQUIRE(server.keeps(1));
    server.take().front().give(ends.recorded(reply_of(as_text(server.at_once.content))));
    CHECK(outcome_of(call).error().code == Errc::internal);
    CHECK(ends.after(1) == Bytes{0});
    on.b.reset();
    CHECK(ends.now() == Bytes{0});
  });
}

}  // namespace
}  // namespace weft
