#include "control/message.h"

#include <doctest/doctest.h>
#include <fcntl.h>

#include "base/errc_names.h"
#include "base/limits.h"
#include "control/message_reader.h"
#include "control/send_queue.h"
#include "os/unix_socket.h"
#include "socket_pair.h"
#include "testing.h"

namespace weft::control {
namespace {

std::string_view json_of(const std::string& frame) {
  return std::string_view(frame).substr(kLengthBytes);
}

Message parsed(const Draft& draft) {
  const auto frame = encode_message(draft);
  REQUIRE(frame.ok());
  auto message = parse_message(json_of(*frame));
  REQUIRE(message.ok());
  return std::move(message).value();
}

std::vector<Fd> some_fds(std::size_t count) {
  std::vector<Fd> fds;
  while (fds.size() < count) fds.push_back(std::move(open_file("/dev/null", O_RDONLY)).value());
  return fds;
}

TEST_CASE("a message survives encoding") {
  const Message request = parsed({7, MessageKind::request, "tag", R"({"model": "bert"})", 2});
  CHECK(request.id == 7);
  CHECK(request.kind == MessageKind::request);
  CHECK(request.name == "tag");
  CHECK(*request.body.text("model") == "bert");
  CHECK(request.fd_count == 2);
  for (const MessageKind kind : {MessageKind::more, MessageKind::cancel, MessageKind::event, MessageKind::answer}) {
    const Message other = parsed({1, kind});
    CHECK(other.kind == kind);
    CHECK(other.body.is_object());
  }
}

TEST_CASE("an error keeps its code and is one line") {
  const std::string frame = encode_error(3, {Errc::no_space, "disk:\nfull"});
  const auto message = parse_message(json_of(frame));
  REQUIRE(message.ok());
  CHECK(message->kind == MessageKind::error);
  CHECK(message->error.code == Errc::no_space);
  CHECK(message->error.message == "disk:\\x0afull");
  for (int code = 0; code <= static_cast<int>(Errc::internal); ++code)
    CHECK(errc_named(errc_name(static_cast<Errc>(code))) == static_cast<Errc>(code));
  CHECK(!errc_named("none of them"));
}

TEST_CASE("text that is no message is refused") {
  for (const std::string_view text :
       {"", "[]", "{}", R"({"id": 1})", R"({"id": -1, "cancel": true})", R"({"id": 1, "cancel": false})",
        R"({"id": 1, "cancel": true, "more": true})", R"({"id": 1, "request": ""})", R"({"id": 1, "request": 5})",
        R"({"id": 1, "request": "a", "body": []})", R"({"id": 1, "request": "a", "fds": 65})",
        R"({"id": 1, "error": "io"})", R"({"id": 1, "request": "a", "request": "b"})", R"({"id": "1", "more": true})"})
    CHECK(parse_message(text).error().code == Errc::invalid);
  const std::string name(65, 'x');
  CHECK(!parse_message(R"({"id": 1, "request": ")" + name + R"("})").ok());
}

TEST_CASE("a message beyond the limits is not encoded") {
  const std::string body = "{\"a\": \"" + std::string(limits::kControlMessageMax, 'x') + "\"}";
  CHECK(encode_message({1, MessageKind::event, {}, body}).error().code == Errc::invalid);
  CHECK(!encode_message({1, MessageKind::event, {}, {}, kFdsAtOnceMax + 1}).ok());
}

TEST_CASE("messages come whole out of bytes that are cut anywhere") {
  const std::string stream = *encode_message({1, MessageKind::request, "a", R"({"x": 1})"}) +
                             *encode_message({2, MessageKind::request, "b"}) +
                             *encode_message({1, MessageKind::cancel});
  for (std::size_t step = 1; step < stream.size(); ++step) {
    MessageReader reader;
    std::vector<std::uint64_t> ids;
    for (std::size_t at = 0; at < stream.size(); at += step) {
      reader.feed(testing::as_bytes(std::string_view(stream).substr(at, step)), {});
      for (;;) {
        auto message = reader.next();
        REQUIRE(message.ok());
        if (!*message) break;
        ids.push_back((*message)->id);
      }
    }
    CHECK(ids == std::vector<std::uint64_t>{1, 2, 1});
  }
}

TEST_CASE("descriptors go to the messages that count them") {
  MessageReader reader;
  const std::string first = *encode_message({1, MessageKind::event, {}, {}, 2});
  const std::string second = *encode_message({2, MessageKind::event, {}, {}, 1});
  const std::string none = *encode_message({3, MessageKind::event});
  reader.feed(testing::as_bytes(first.substr(0, 6)), {});
  CHECK(!*reader.next());
  reader.feed(testing::as_bytes(first.substr(6)), some_fds(2));
  CHECK((*reader.next())->fds.size() == 2);
  reader.feed(testing::as_bytes(none + second), some_fds(1));
  CHECK((*reader.next())->fds.empty());
  CHECK((*reader.next())->fds.size() == 1);
  CHECK(!*reader.next());
  reader.feed(testing::as_bytes(second), {});
  CHECK(reader.next().error().code == Errc::invalid);
}

TEST_CASE("descriptors that do not come with the end of a message that counts them end the stream") {
  const std::string counts = *encode_message({1, MessageKind::event, {}, {}, 2});
  const std::string none = *encode_message({2, MessageKind::event});
  for (const std::string& bytes : {counts.substr(0, 5), counts.substr(0, counts.size() - 1), counts + none,
                                   counts + none.substr(0, 3), std::string("\0", 1)}) {
    MessageReader reader;
    reader.feed(testing::as_bytes(bytes), some_fds(2));
    auto message = reader.next();
    CHECK(message.error().code == Errc::invalid);
  }
  MessageReader reader;
  reader.feed(testing::as_bytes(none), some_fds(1));
  CHECK((*reader.next())->fds.empty());
  CHECK(reader.next().error().code == Errc::invalid);
}

TEST_CASE("messages keep their descriptors, also through a socket whose buffer fills up") {
  const auto [ours, theirs] = testing::socket_pair();
  SendQueue queue;
  const std::string body = R"({"x": ")" + std::string(300'000, 'x') + R"("})";
  for (std::uint64_t id = 1; id <= 8; ++id)
    queue.push(*encode_message({id, MessageKind::event, {}, body, id % 3}), some_fds(id % 3));
  MessageReader reader;
  std::vector<std::byte> bytes(64U << 10U);
  for (std::uint64_t id = 1; id <= 8;) {
    REQUIRE(queue.flush(ours.get()).ok());
    auto received = receive_some(theirs.get(), bytes);
    REQUIRE(received.ok());
    reader.feed(std::span(bytes).first(received->bytes), std::move(received->fds));
    for (;;) {
      auto message = reader.next();
      REQUIRE(message.ok());
      if (!*message) break;
      CHECK((*message)->id == id);
      CHECK((*message)->fds.size() == id++ % 3);
    }
  }
}

TEST_CASE("a length that no message has ends the stream") {
  MessageReader reader;
  reader.feed(testing::as_bytes(std::string("\xff\xff\xff\xff", 4)), {});
  CHECK(reader.next().error().code == Errc::invalid);
}

}  // namespace
}  // namespace weft::control
