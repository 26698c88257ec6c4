// Single requests to servers whose answers break the rules.
#include "http/client/http_client.h"

#include <doctest/doctest.h>

#include <string>

#include "base/limits.h"
#include "fakes/responder.h"
#include "testing.h"

using namespace weft;
using namespace weft::testing;
using namespace std::chrono_literals;

namespace {

struct Received {
  Result<AnswerHead> head;
  std::string body;
};

Received exchange_with(const std::string& answer, std::function<Result<bool>(const AnswerHead&)> takes_body = {}) {
  Responder server([&](const Asked&) { return answer; });
  HttpClient client({{}, {}, {}, 60s, 0});
  std::string body;
  HttpExchange exchange;
  exchange.url = exchange.where = server.endpoint() + "/x";
  exchange.takes_body = std::move(takes_body);
  exchange.sink = [&](std::span<const std::byte> bytes) {
    body += as_text(bytes);
    return Status();
  };
  exchange.body_max = 100;
  auto head = client.exchange(exchange);
  return {std::move(head), body};
}

}  // namespace

TEST_CASE("exchange: the last head counts, names are in lower case, the first field of a name wins") {
  const auto got = exchange_with("HTTP/1.1 100 Continue\r\nX-Early: 1\r\n\r\n" +
                                 http_answer(200, "body", "ETag:  \"a\" \r\nX-Twice: 1\r\nX-Twice: 2\r\n"));
  REQUIRE(got.head.ok());
  CHECK(got.head->status == 200);
  REQUIRE(got.head->field("etag") != nullptr);
  CHECK(*got.head->field("etag") == "\"a\"");
  CHECK(*got.head->field("x-twice") == "1");
  CHECK(got.head->field("x-early") == nullptr);
  CHECK(got.body == "body");
}

TEST_CASE("exchange: trailers are no fields of the head") {
  const auto got = exchange_with(
      "HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n4\r\nbody\r\n0\r\nX-Late: 1\r\n\r\n");
  REQUIRE(got.head.ok());
  CHECK(got.head->field("x-late") == nullptr);
  CHECK(got.body == "body");
}

TEST_CASE("exchange: a change of the protocol is an error, and what follows it is no body") {
  const auto got = exchange_with("HTTP/1.1 101 X\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\nother bytes",
                                 [](const AnswerHead&) -> Result<bool> { return true; });
  CHECK(got.head.error().code == Errc::io);
  CHECK(got.body.empty());
}

TEST_CASE("exchange: an unwanted body is dropped, however long it is") {
  auto unwanted = [](const AnswerHead&) -> Result<bool> { return false; };
  for (const std::size_t length : {std::size_t{10}, std::size_t{10'000'000}}) {
    const auto got = exchange_with(http_answer(404, std::string(length, 'x')), unwanted);
    REQUIRE(got.head.ok());
    CHECK(got.head->status == 404);
    CHECK(got.body.empty());
  }
}

TEST_CASE("exchange: bodies and heads beyond their bounds are errors") {
  const auto long_body = exchange_with(http_answer(200, std::string(101, 'x')));
  REQUIRE_FALSE(long_body.head.ok());
  CHECK(long_body.head.error().code == Errc::io);
  std::string fields;
  for (std::size_t i = 0; i <= limits::kHttpFieldsMax; ++i) fields += "X-Field: 1\r\n";
  CHECK(exchange_with(http_answer(200, "", fields)).head.error().code == Errc::io);
  std::string long_fields;
  for (int i = 0; i < 10; ++i) long_fields += "X-Field: " + std::string(limits::kHttpHeadMax / 8, 'x') + "\r\n";
  CHECK(exchange_with(http_answer(200, "", long_fields)).head.error().code == Errc::io);
  std::string trailers;
  for (int i = 0; i < 40; ++i) trailers += "X-Late: " + std::string(limits::kHttpHeadMax / 32, 'x') + "\r\n";
  CHECK(exchange_with("HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" + trailers + "\r\n")
            .head.error()
            .code == Errc::io);
  std::string early;
  while (early.size() <= limits::kHttpHeadMax) early += "HTTP/1.1 100 Continue\r\n\r\n";
  CHECK_FALSE(exchange_with(early + http_answer(200, "")).head.ok());
}

TEST_CASE("exchange: cut answers, no answer, and other protocols are errors") {
  CHECK(exchange_with("").head.error().code == Errc::timed_out);
  CHECK(exchange_with("HTTP/1.1 200 X\r\nContent-Length: 10\r\n\r\nhalf").head.error().code == Errc::timed_out);
  CHECK_FALSE(exchange_with("SSH-2.0-x\r\n").head.ok());
}

TEST_CASE("exchange: a stopped client sends nothing") {
  Responder server([](const Asked&) { return http_answer(200, ""); });
  HttpClient client({{}, {}, {}, 60s, 0});
  client.stop(0s);
  HttpExchange exchange;
  exchange.url = exchange.where = server.endpoint();
  CHECK(client.exchange(exchange).error().code == Errc::cancelled);
  CHECK(server.requests() == 0);
}
