#include "net/session/handshake.h"

#include <doctest/doctest.h>

#include <fmt/core.h>

#include <algorithm>

#include "net/session/handshake_messages.h"
#include "testing.h"

namespace weft::net {
namespace {

Secret some_key() {
  return Secret{std::span<const std::byte, kSecretBytes>(random_bytes())};
}

Self self(const KeyRing& keys, std::string node, std::uint64_t session) {
  return {keys, std::move(node), testing::random_bytes(16, session), session};
}

Self self(const Secret& key, std::string node, std::uint64_t session) {
  return self(KeyRing(key), std::move(node), session);
}

// The first message of a holder of the key, with any public key.
std::vector<std::byte> hello_with(const ClusterKey& key, const HelloMessage& hello) {
  auto frame = make_frame({FrameKind::hello, 0, 0, 0}, encode_hello(hello));
  const std::span<std::byte> all(frame);
  SymmetricState noise(all.first(all.size() - kFrameTagBytes));
  noise.mix_key_and_hash(key.psk().bytes());
  noise.mix_hash(hello.key);
  noise.mix_key(hello.key);
  std::ranges::copy(noise.encrypt_and_hash({}), tag_of(frame).begin());
  return frame;
}

// A confirm without the session's keys.
std::vector<std::byte> guess(std::uint64_t session) {
  return make_frame({FrameKind::confirm, 0, session, 0}, {});
}

FrameView view_of(const std::vector<std::byte>& frame) {
  const auto view = parse_frame(frame);
  REQUIRE(view.ok());
  return *view;
}

TEST_CASE("two daemons with one key agree, and know who and where the other is") {
  const Secret key = some_key();
  const Caller caller(self(key, "node-a", 11));
  const auto answerer = Answerer::answer(self(key, "node-b", 22), view_of(caller.hello()));
  REQUIRE(answerer.ok());
  CHECK(answerer->caller_address() == testing::random_bytes(16, 11));
  auto agreed = caller.welcomed(view_of(answerer->welcome()));
  REQUIRE(agreed.ok());
  auto session = answerer->confirmed(view_of(agreed->confirm));
  REQUIRE(session.ok());
  CHECK(session->ends().node == "node-a");
  CHECK(agreed->session.ends().node == "node-b");
  const auto there = agreed->session.seal(FrameKind::message, testing::as_bytes("hello"));
  REQUIRE(there.ok());
  CHECK(session->open(view_of(*there)).ok());
  const auto back = session->seal(FrameKind::message, testing::as_bytes("well met"));
  REQUIRE(back.ok());
  CHECK(agreed->session.open(view_of(*back)).ok());
}

TEST_CASE("both sides detect another key") {
  const Caller caller(self(some_key(), "node-a", 11));
  const Secret key = some_key();
  const auto answerer = Answerer::answer(self(key, "node-b", 22), view_of(caller.hello()));
  REQUIRE(answerer.ok());
  const auto agreed = caller.welcomed(view_of(answerer->welcome()));
  REQUIRE(!agreed.ok());
  CHECK(agreed.error().code == Errc::permission);
  CHECK(answerer->accepted().error().code == Errc::permission);
  CHECK(answerer->caller() == "node-a");
  CHECK(answerer->confirmed(view_of(guess(22))).error().code == Errc::permission);
}

TEST_CASE("a node with two keys takes calls that prove either, and a session says which one was proved") {
  const Secret before = some_key();
  const Secret now = some_key();
  for (const Secret& proving : {before, now}) {
    const Caller caller(self(proving, "node-a", 11));
    const auto answerer = Answerer::answer(self(KeyRing(now, before), "node-b", 22), view_of(caller.hello()));
    REQUIRE(answerer.ok());
    auto agreed = caller.welcomed(view_of(answerer->welcome()));
    REQUIRE(agreed.ok());
    CHECK(agreed->session.ends().key_id == ClusterKey(proving).id());
    const auto session = answerer->confirmed(view_of(agreed->confirm));
    REQUIRE(session.ok());
    CHECK(session->ends().key_id == ClusterKey(proving).id());
  }
  const Caller third(self(some_key(), "node-a", 11));
  const auto refused = Answerer::answer(self(KeyRing(now, before), "node-b", 22), view_of(third.hello()));
  REQUIRE(refused.ok());
  CHECK(refused->accepted().error().code == Errc::permission);
}

TEST_CASE("a caller with two keys learns which of them the answerer holds") {
  const Secret before = some_key();
  const Secret now = some_key();
  const KeyRing ring(now, before);
  const Caller caller(self(ring, "node-a", 11));
  const auto refused = Answerer::answer(self(before, "node-b", 22), view_of(caller.hello()));
  REQUIRE(refused.ok());
  CHECK(caller.welcomed(view_of(refused->welcome())).error().code == Errc::permission);
  const auto named = key_named_by(view_of(refused->welcome()), ring);
  REQUIRE(named.has_value());
  const Caller again(self(ring.proving_by(*named), "node-a", 12));
  const auto answerer = Answerer::answer(self(before, "node-b", 23), view_of(again.hello()));
  REQUIRE(answerer.ok());
  CHECK(again.welcomed(view_of(answerer->welcome())).ok());
  CHECK(!key_named_by(view_of(refused->welcome()), KeyRing(some_key())).has_value());
  CHECK(!key_named_by(view_of(again.hello()), ring).has_value());
}

TEST_CASE("a replayed handshake gives no session") {
  const Secret key = some_key();
  const Caller caller(self(key, "node-a", 11));
  const auto first = Answerer::answer(self(key, "node-b", 22), view_of(caller.hello()));
  REQUIRE(first.ok());
  const auto agreed = caller.welcomed(view_of(first->welcome()));
  REQUIRE(agreed.ok());
  const auto second = Answerer::answer(self(key, "node-b", 22), view_of(caller.hello()));
  REQUIRE(second.ok());
  CHECK(second->confirmed(view_of(agreed->confirm)).error().code == Errc::permission);
  const Caller later(self(key, "node-a", 11));
  CHECK(later.welcomed(view_of(first->welcome())).error().code == Errc::permission);
}

TEST_CASE("a changed byte of a handshake is detected") {
  const Secret key = some_key();
  const Caller caller(self(key, "node-a", 11));
  const std::size_t end = caller.hello().size() - kFrameTagBytes;
  for (std::size_t at = 0; at < end; ++at) {
    auto hello = caller.hello();
    hello[at] ^= std::byte{1};
    const auto view = parse_frame(hello);
    if (!view.ok()) continue;
    const auto answerer = Answerer::answer(self(key, "node-b", 22), *view);
    if (!answerer.ok()) continue;
    CHECK(!answerer->accepted().ok());
    auto welcome = answerer->welcome();
    CHECK(!caller.welcomed(view_of(welcome)).ok());
  }
  const auto answerer = Answerer::answer(self(key, "node-b", 22), view_of(caller.hello()));
  REQUIRE(answerer.ok());
  for (std::size_t at = 0; at < answerer->welcome().size(); ++at) {
    auto welcome = answerer->welcome();
    welcome[at] ^= std::byte{1};
    const auto view = parse_frame(welcome);
    if (!view.ok()) continue;
    const auto agreed = caller.welcomed(*view);
    // The padding of the encoding and the unused fields of the header carry no information.
    if (agreed.ok()) CHECK(answerer->confirmed(view_of(agreed->confirm)).ok());
  }
  const auto agreed = testing::must(caller.welcomed(view_of(answerer->welcome())));
  for (std::size_t at = 0; at < agreed.confirm.size(); ++at) {
    auto confirm = agreed.confirm;
    confirm[at] ^= std::byte{1};
    const auto view = parse_frame(confirm);
    if (view.ok()) CHECK(!answerer->confirmed(*view).ok());
  }
}

TEST_CASE("a hello with a key of low order gets no answer") {
  const Secret key = some_key();
  const HelloMessage hello{"node-a", ClusterKey(key).id(), {}, 11, EndpointAddress(16)};
  const auto frame = hello_with(ClusterKey(key), hello);
  REQUIRE(is_proved(KeyRing(key), view_of(frame)));
  CHECK(Answerer::answer(self(key, "node-b", 22), view_of(frame)).error().code == Errc::permission);
}

TEST_CASE("a hello proves that its sender holds the key, and any change breaks the proof") {
  const Secret key = some_key();
  const Caller caller(self(key, "node-a", 11));
  CHECK(is_proved(KeyRing(key), view_of(caller.hello())));
  CHECK(!is_proved(KeyRing(some_key()), view_of(caller.hello())));
  for (std::size_t at = 0; at < caller.hello().size(); ++at) {
    auto hello = caller.hello();
    hello[at] ^= std::byte{1};
    const auto view = parse_frame(hello);
    if (view.ok()) CHECK(!is_proved(KeyRing(key), *view));
  }
}

TEST_CASE("a node that calls itself is told so") {
  const Secret key = some_key();
  const Caller caller(self(key, "node-a", 11));
  const auto answerer = Answerer::answer(self(key, "node-a", 22), view_of(caller.hello()));
  REQUIRE(answerer.ok());
  CHECK(caller.welcomed(view_of(answerer->welcome())).error().message.find("itself") != std::string::npos);
}

TEST_CASE("both sides refuse another wire version, and name the node and both versions") {
  static constexpr std::uint16_t kOther = 5;
  const auto named = [](const Error& error, const char* node) {
    CHECK(error.code == Errc::unsupported);
    CHECK(error.message ==
          fmt::format("a handshake: node {} has wire version {}, this node has {}", node, kOther, kWireVersion));
  };
  const Secret key = some_key();
  const HelloMessage hello{"node-a", ClusterKey(key).id(), EphemeralKey().public_part(),
                           11,       EndpointAddress(16),  kOther};
  const auto answerer = Answerer::answer(self(key, "node-b", 22), view_of(hello_with(ClusterKey(key), hello)));
  REQUIRE(answerer.ok());
  named(answerer->accepted().error(), "node-a");
  named(answerer->confirmed(view_of(guess(22))).error(), "node-a");
  const auto answer = testing::must(decode_welcome(view_of(answerer->welcome()).payload));
  CHECK(answer.node == "node-b");
  CHECK(answer.version == kWireVersion);

  const Caller caller(self(key, "node-a", 11));
  const WelcomeMessage welcome{"node-b\n", random_bytes(), random_bytes(), 22, random_bytes(), kOther};
  const auto frame = make_frame({FrameKind::welcome, 0, 11, 0}, encode_welcome(welcome));
  named(caller.welcomed(view_of(frame)).error(), "node-b\\x0a");
}

TEST_CASE("messages of other kinds and sizes are refused") {
  const Secret key = some_key();
  const Caller caller(self(key, "node-a", 11));
  const auto nonsense = make_frame({FrameKind::hello, 0, 0, 0}, testing::random_bytes(200, 5));
  CHECK(Answerer::answer(self(key, "b", 22), view_of(nonsense)).error().code == Errc::invalid);
  const auto empty = make_frame({FrameKind::hello, 0, 0, 0}, {});
  CHECK(Answerer::answer(self(key, "b", 22), view_of(empty)).error().code == Errc::invalid);
  CHECK(caller.welcomed(view_of(caller.hello())).error().code == Errc::invalid);
  const HelloMessage long_name{std::string(65, 'n'), random_bytes(), random_bytes(), 1, EndpointAddress(16)};
  CHECK(decode_hello(encode_hello(long_name)).error().code == Errc::invalid);
  const HelloMessage no_session{"n", random_bytes(), random_bytes(), 0, EndpointAddress(16)};
  CHECK(decode_hello(encode_hello(no_session)).error().code == Errc::invalid);
  const HelloMessage no_address{"n", random_bytes(), random_bytes(), 1, {}};
  CHECK(decode_hello(encode_hello(no_address)).error().code == Errc::invalid);
  const HelloMessage far{"n", random_bytes(), random_bytes(), 1, EndpointAddress(257)};
  CHECK(decode_hello(encode_hello(far)).error().code == Errc::invalid);
}

}  // namespace
}  // namespace weft::net
