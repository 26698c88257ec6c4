// Replies that a server gives after PeerServer::receive() has returned, for every transport.
#include <algorithm>

#include "base/limits.h"
#include "exchange_support.h"

namespace weft {
namespace {

using namespace conformance;
using namespace std::chrono_literals;
using testing::as_text;

TEST_CASE("a reply that another thread gives later reaches its caller, with its windows") {
  in_every_world([](TransportWorld& world) {
    const KeyFile key;
    LaterServer server;
    auto a = open_node(world, key, "a", nullptr);
    auto b = open_node(world, key, "b", &server);
    auto call = begin(*a, at(*b, "b"), "later");
    REQUIRE(server.keeps(1));
    CHECK(comes_true([&] { return b->figures().pending == 1; }));
    CHECK(!is_over(call));
    {
      auto replies = server.take();
      CHECK(replies.front().wanted());
      replies.front().give(reply_of("at last", server.at_once.content));
      CHECK(!replies.front().wanted());
      replies.front().give(reply_of("too late"));
    }
    auto answer = outcome_of(call);
    REQUIRE(answer.ok());
    CHECK(as_text((*answer)->head()) == "at last");
    const auto got = read_all(*a, **answer);
    REQUIRE(got.ok());
    CHECK(*got == server.at_once.content);
    CHECK(comes_true([&] { return b->figures().pending == 0; }));
    CHECK(b->figures().answers == 1);
  });
}

TEST_CASE("a later reply may have a long head, or be an error") {
  in_every_world([](TransportWorld& world) {
    const KeyFile key;
    LaterServer server;
    auto a = open_node(world, key, "a", nullptr);
    auto b = open_node(world, key, "b", &server);
    auto long_head = begin(*a, at(*b, "b"), "later");
    REQUIRE(server.keeps(1));
    server.take().front().give(reply_of(as_text(server.at_once.content)));
    const auto answer = outcome_of(long_head);
    REQUIRE(answer.ok());
    CHECK(as_text((*answer)->head()) == as_text(server.at_once.content));
    auto failing = begin(*a, at(*b, "b"), "later");
    REQUIRE(server.keeps(1));
    server.take().front().give(Error{Errc::not_found, "no such thing"});
    const auto failed = outcome_of(failing);
    REQUIRE(!failed.ok());
    CHECK(failed.error().code == Errc::not_found);
    CHECK(failed.error().message == "no such thing");
  });
}

TEST_CASE("requests that wait in the server hold no thread of the exchange") {
  in_every_world([](TransportWorld& world) {
    const KeyFile key;
    LaterServer server;
    auto a = open_node(world, key, "a", nullptr);
    auto b = open_node(world, key, "b", &server);
    std::vector<BegunCall> calls;
    for (int i = 0; i < 30; ++i) calls.push_back(begin(*a, at(*b, "b"), "later"));
    REQUIRE(server.keeps(30));
    CHECK(ask(*a, at(*b, "b"), "echo").ok());
    for (PendingReply& reply : server.take()) reply.give(PeerReply{});
    for (BegunCall& call : calls) CHECK(outcome_of(call).ok());
  });
}

TEST_CASE("a request that the server drops fails") {
  in_every_world([](TransportWorld& world) {
    const KeyFile key;
    LaterServer server;
    auto a = open_node(world, key, "a", nullptr);
    auto b = open_node(world, key, "b", &server);
    auto call = begin(*a, at(*b, "b"), "later");
    REQUIRE(server.keeps(1));
    server.take().clear();
    CHECK(outcome_of(call).error().code == Errc::unreachable);
    CHECK(comes_true([&] { return b->figures().pending == 0; }));
  });
}

TEST_CASE("the server learns that a caller has given up, and a reply then has no effect") {
  in_every_world_at_once([](TransportWorld& world) {
    const KeyFile key;
    LaterServer server;
    auto a = open_node(world, key, "a", nullptr);
    auto b = open_node(world, key, "b", &server);
    REQUIRE(ask(*a, at(*b, "b"), "echo").ok());
    auto call = begin(*a, at(*b, "b"), "later", 400ms);
    REQUIRE(server.keeps(1));
    {
      auto replies = server.take();
      CHECK(outcome_of(call).error().code == Errc::timed_out);
      CHECK(server.is_told());
      CHECK(!replies.front().wanted());
      replies.front().give(reply_of("late", server.at_once.content));
    }
    CHECK(comes_true([&] { return b->figures().pending == 0; }));
    CHECK(b->figures().answers == 1);
    CHECK(b->figures().windows == 0);
    CHECK(ask(*a, at(*b, "b"), "echo").ok());
    CHECK(a->figures().handshakes == 1);
  });
}

TEST_CASE("the server learns that a caller's session has ended") {
  in_every_world([](TransportWorld& world) {
    const KeyFile key;
    LaterServer server;
    auto a = open_node(world, key, "a", nullptr);
    auto b = open_node(world, key, "b", &server);
    auto call = begin(*a, at(*b, "b"), "later");
    REQUIRE(server.keeps(1));
    auto replies = server.take();
    a.reset();  // it closes its sessions
    CHECK(outcome_of(call).error().code == Errc::cancelled);
    CHECK(server.is_told());
    CHECK(!replies.front().wanted());
    replies.front().give(reply_of("late", server.at_once.content));
    replies.clear();
    CHECK(comes_true([&] { return b->figures().pending == 0; }));
    CHECK(b->figures().windows == 0);
  });
}

TEST_CASE("the server learns that a caller has restarted") {
  in_every_world([](TransportWorld& world) {
    const KeyFile key;
    LaterServer server;
    std::atomic<bool> mute{false};
    auto a = open_node(world, key, "a", nullptr, [&](auto) { return mute ? 0 : 1; });
    auto b = open_node(world, key, "b", &server);
    auto before = begin(*a, at(*b, "b"), "later");
    REQUIRE(server.keeps(1));
    mute = true;
    a.reset();
    auto restarted = open_node(world, key, "a", nullptr);
    auto after = begin(*restarted, at(*b, "b"), "later");
    CHECK(server.is_told());
    REQUIRE(server.keeps(1));  // the server has dropped the unwanted reply, and only this one
    auto replies = server.take();
    CHECK(replies.front().wanted());
    replies.front().give(PeerReply{});
    CHECK(outcome_of(after).ok());
    CHECK(outcome_of(before).error().code == Errc::cancelled);
  });
}

TEST_CASE("pending replies may outlive the exchange") {
  in_every_world_at_once([](TransportWorld& world) {
    const KeyFile key;
    LaterServer server;
    auto a = open_node(world, key, "a", nullptr);
    auto b = open_node(world, key, "b", &server);
    std::vector<BegunCall> calls;
    for (int i = 0; i < 3; ++i) calls.push_back(begin(*a, at(*b, "b"), "later", 2s));
    REQUIRE(server.keeps(3));
    auto replies = server.take();
    std::thread giver([&] { replies[0].give(reply_of("just now")); });  // before the end, in it, or after it
    b.reset();
    giver.join();
    CHECK(server.is_told());
    for (const PendingReply& reply : replies) CHECK(!reply.wanted());
    replies[1].give(reply_of("late", server.at_once.content));
    replies.clear();
    CHECK(std::ranges::count_if(calls, [](BegunCall& call) { return outcome_of(call).ok(); }) <= 1);
  });
}

TEST_CASE("pending replies beyond a peer's limit are refused, and other requests of the peer are answered") {
  in_every_world([](TransportWorld& world) {
    const KeyFile key;
    LaterServer server;
    auto a = open_node(world, key, "a", nullptr);
    auto b = open_node(world, key, "b", &server);
    std::vector<BegunCall> calls;
    for (std::size_t i = 1; i <= limits::kPeerPendingEachMax; ++i) {
      calls.push_back(begin(*a, at(*b, "b"), "later", kPatience * 6));
      REQUIRE(server.keeps(i));
    }
    calls.push_back(begin(*a, at(*b, "b"), "later", kPatience * 6));
    REQUIRE(server.is_told());
    CHECK(server.kept() == limits::kPeerPendingEachMax);  // the server has dropped the refused request
    CHECK(b->figures().busy == 1);
    CHECK(ask(*a, at(*b, "b"), "echo").ok());
    for (PendingReply& reply : server.take()) reply.give(PeerReply{});
    std::size_t refused = 0;
    for (BegunCall& call : calls) {
      const auto outcome = outcome_of(call);
      if (outcome.ok()) continue;
      ++refused;
      CHECK(outcome.error().code == Errc::busy);
    }
    CHECK(refused == 1);
    auto again = begin(*a, at(*b, "b"), "later");
    REQUIRE(server.keeps(1));
    server.take().front().give(PeerReply{});
    CHECK(outcome_of(again).ok());
  });
}

// Gives every reply that the server keeps until the call is over.
bool gives_until_over(LaterServer& server, const BegunCall& call, std::span<const std::byte> content = {}) {
  return comes_true([&] {
    for (PendingReply& reply : server.take()) reply.give(reply_of("found", content));
    return is_over(call);
  });
}

TEST_CASE("a lost request or later reply is repeated") {
  in_every_world_at_once([](TransportWorld& world) {
    const KeyFile key;
    LaterServer server;
    std::atomic<bool> lose_request{false}, lose_reply{false};
    auto a = open_node(world, key, "a", nullptr, [&](auto) { return lose_request.exchange(false) ? 0 : 1; });
    auto b = open_node(world, key, "b", &server, [&](auto) { return lose_reply.exchange(false) ? 0 : 1; });
    REQUIRE(ask(*a, at(*b, "b"), "echo").ok());
    lose_request = true;
    auto call = begin(*a, at(*b, "b"), "later");
    REQUIRE(server.keeps(1));
    CHECK(!lose_request);
    lose_reply = true;
    CHECK(gives_until_over(server, call));
    CHECK(!lose_reply);
    CHECK(as_text((*outcome_of(call))->head()) == "found");
    call = begin(*a, at(*b, "b"), "later");
    REQUIRE(server.keeps(1));
    lose_reply = true;
    CHECK(gives_until_over(server, call, server.at_once.content));
    const auto answer = outcome_of(call);
    REQUIRE(answer.ok());
    CHECK(testing::must(read_all(*a, **answer)) == server.at_once.content);
    CHECK(a->figures().handshakes == 1);
  });
}

TEST_CASE("a session that ends over a repeated message makes its pending replies unwanted, and the call is repeated") {
  in_every_world_at_once([](TransportWorld& world) {
    const KeyFile key;
    LaterServer server;
    std::atomic<bool> repeat_request{false}, repeat_reply{false};
    auto a = open_node(world, key, "a", nullptr, [&](auto) { return repeat_request.exchange(false) ? 2 : 1; });
    auto b = open_node(world, key, "b", &server, [&](auto) { return repeat_reply.exchange(false) ? 2 : 1; });
    REQUIRE(ask(*a, at(*b, "b"), "echo").ok());
    repeat_request = true;
    auto call = begin(*a, at(*b, "b"), "later");
    CHECK(server.is_told());
    CHECK(gives_until_over(server, call));
    CHECK(outcome_of(call).ok());
    CHECK(a->figures().handshakes == 2);
    call = begin(*a, at(*b, "b"), "later");
    REQUIRE(server.keeps(1));
    repeat_reply = true;
    CHECK(gives_until_over(server, call));
    CHECK(outcome_of(call).ok());
    CHECK(ask(*a, at(*b, "b"), "echo").ok());
  });
}

}  // namespace
}  // namespace weft
