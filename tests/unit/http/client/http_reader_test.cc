// Redirects, tokens, ranges, repeats and stops, against servers whose answers a test determines byte for byte.
#include "http/client/http_reader.h"

#include <doctest/doctest.h>

#include <atomic>
#include <string>
#include <thread>

#include "base/limits.h"
#include "fakes/manual_time.h"
#include "fakes/responder.h"
#include "testing.h"

using namespace weft;
using namespace weft::testing;
using namespace std::chrono_literals;

namespace {

const std::string kToken = "hf_SecretSecretSecret";
const std::string kContent = "0123456789abcdefghijklmnopqrstuvwxyz";

// A reader whose pauses take no real time, and the token of one server.
struct World {
  explicit World(const std::string& endpoint = {}) {
    options.http.connect_max = 60s;
    options.stall_max = 60s;
    options.time = &time;
    if (endpoint.empty()) return;
    options.token = kToken;
    options.token_origin = must(parse_http_url(endpoint)).origin;
  }
  Result<HttpResult> get(const std::string& url, std::optional<Range> range = std::nullopt) {
    body.clear();
    HttpReader reader(options);
    HttpRead read;
    read.url = url;
    read.body_max = 1'000;
    read.range = range;
    read.size = size;
    return reader.get(read, [this](std::span<const std::byte> bytes) {
      body += as_text(bytes);
      return sink_answer;
    });
  }
  Result<HttpResult> get_text(const std::string& url) {
    HttpRead read;
    read.url = url;
    read.body_max = 1'000;
    return HttpReader(options).get_text(read, body);
  }
  // Returns the seconds that all pauses have taken.
  double passed() const { return std::chrono::duration<double>(time.now() - begun).count(); }

  ManualTime time;
  const Deadline begun = time.now();
  HttpReaderOptions options;
  std::optional<std::uint64_t> size;
  Status sink_answer;
  std::string body;
};

bool has_token(const std::string& head) {
  return head.find("Authorization: Bearer " + kToken + "\r\n") != std::string::npos;
}

// Returns the error of a request whose first answer redirects there.
Error error_of_redirect(const std::string& location) {
  Responder server([&](const Asked&) { return redirect_to(location); });
  World world(server.endpoint());
  const auto result = world.get(server.endpoint() + "/a");
  REQUIRE_FALSE(result.ok());
  CHECK(result.error().message.find(kToken) == std::string::npos);
  CHECK(result.error().message.find('\n') == std::string::npos);
  return result.error();
}

}  // namespace

TEST_CASE("reader: the token goes to its own server, and not to another port after a redirect") {
  Responder away([](const Asked&) { return http_answer(200, "bytes"); });
  Responder hub([&](const Asked& asked) {
    return asked.path == "/a" ? redirect_to("/b") : redirect_to(away.endpoint() + "/c?X-Signature=1");
  });
  World world(hub.endpoint());
  const auto result = world.get(hub.endpoint() + "/a");
  REQUIRE(result.ok());
  CHECK(world.body == "bytes");
  CHECK(result->redirected_away);
  CHECK(result->first.status == 302);
  CHECK(result->last.status == 200);
  CHECK(result->url.shown == away.endpoint() + "/c");
  REQUIRE(hub.requests() == 2);
  for (const std::string& head : hub.heads()) CHECK(has_token(head));
  REQUIRE(away.requests() == 1);
  CHECK(away.heads()[0].find("uthorization") == std::string::npos);
  CHECK(away.heads()[0].find(kToken) == std::string::npos);
  CHECK(away.heads()[0].starts_with("GET /c?X-Signature=1 "));
}

TEST_CASE("reader: after a redirect away the token is not sent again, also not to its own server") {
  std::string hub_endpoint;
  Responder away([&](const Asked&) { return redirect_to(hub_endpoint + "/back"); });
  Responder hub([&](const Asked& asked) {
    return asked.path == "/a" ? redirect_to(away.endpoint() + "/b") : http_answer(200, "bytes");
  });
  hub_endpoint = hub.endpoint();
  World world(hub.endpoint());
  CHECK(world.get(hub.endpoint() + "/a").ok());
  REQUIRE(hub.requests() == 2);
  CHECK(has_token(hub.heads()[0]));
  CHECK_FALSE(has_token(hub.heads()[1]));
}

TEST_CASE("reader: a request to another server has no token") {
  Responder hub([](const Asked&) { return http_answer(200, ""); });
  Responder other([](const Asked&) { return http_answer(200, ""); });
  World world(hub.endpoint());
  CHECK(world.get(other.endpoint() + "/a").ok());
  CHECK(other.heads()[0].find(kToken) == std::string::npos);
}

TEST_CASE("reader: redirects to files, in a circle, without a place, with a user or with the token are refused") {
  for (const char* location : {"file:///etc/passwd", "ftp://127.0.0.1/", "http://user:pass@127.0.0.1:1/", "/a"}) {
    CAPTURE(location);
    CHECK(error_of_redirect(location).code == Errc::io);
  }
  CHECK(error_of_redirect("/" + kToken).code == Errc::io);
  CHECK(error_of_redirect("/" + std::string(limits::kHttpUrlMax, 'a')).code == Errc::io);
  Responder lost([](const Asked&) { return http_answer(302, ""); });
  World world;
  CHECK(world.get(lost.endpoint()).error().code == Errc::io);
}

TEST_CASE("reader: ten redirects are followed, and no more") {
  Responder server([](const Asked& asked) {
    const std::size_t left = std::stoul(asked.path.substr(1));
    return left == 0 ? http_answer(200, "end") : redirect_to("/" + std::to_string(left - 1));
  });
  World world;
  CHECK(world.get(server.endpoint() + "/10").ok());
  CHECK(world.body == "end");
  CHECK(world.get(server.endpoint() + "/11").error().code == Errc::io);
}

TEST_CASE("reader: a HEAD stays with its server if it is told so") {
  Responder away([](const Asked&) { return http_answer(200, ""); });
  Responder hub([&](const Asked& asked) {
    CHECK(asked.head.starts_with("HEAD "));
    if (asked.path == "/a") return redirect_to("/b");
    return redirect_to(away.endpoint() + "/c", "X-Linked-Size: 7\r\n");
  });
  World world(hub.endpoint());
  HttpRead read;
  read.url = hub.endpoint() + "/a";
  read.follow = HttpFollow::same_origin;
  const auto result = HttpReader(world.options).head(read);
  REQUIRE(result.ok());
  CHECK(result->last.status == 302);
  CHECK(*result->last.field("x-linked-size") == "7");
  CHECK_FALSE(result->redirected_away);
  CHECK(away.requests() == 0);
}

TEST_CASE("reader: a range is what was asked for") {
  Responder server([](const Asked& asked) { return range_answer(asked, kContent); });
  World world;
  world.size = kContent.size();
  const auto result = world.get(server.endpoint(), Range{3, 5});
  REQUIRE(result.ok());
  CHECK(result->last.status == 206);
  CHECK(world.body == kContent.substr(3, 5));
  CHECK(server.heads()[0].find("\r\nRange: bytes=3-7\r\n") != std::string::npos);
  CHECK(server.heads()[0].find("\r\nAccept-Encoding: identity\r\n") != std::string::npos);
  world.size = 7;
  CHECK(world.get(server.endpoint(), Range{3, 4}).error().code == Errc::changed);
  CHECK(world.body.empty());
}

TEST_CASE("reader: an answer that is no such range gives the sink nothing") {
  const std::string five(5, 'x');
  for (const std::string& answer :
       {http_answer(200, kContent), http_answer(206, five), http_answer(206, five, "Content-Range: bytes 4-8/36\r\n"),
        http_answer(206, five, "Content-Range: bytes 3-8/36\r\n"), http_answer(206, five, "Content-Range: 3-7\r\n"),
        http_answer(206, five, "Content-Range: bytes 3-7\r\n"),
        http_answer(206, five, "Content-Range: bytes 3-7/x\r\n"),
        http_answer(206, five, "Content-Range: bytes 3-7/36\r\nContent-Encoding: gzip\r\n")}) {
    CAPTURE(answer);
    Responder server([&](const Asked&) { return answer; });
    World world;
    CHECK(world.get(server.endpoint(), Range{3, 5}).error().code == Errc::io);
    CHECK(world.body.empty());
    CHECK(server.requests() == 1);
  }
}

TEST_CASE("reader: a body longer than its range is an error") {
  Responder server(
      [](const Asked&) { return http_answer(206, std::string(9, 'x'), "Content-Range: bytes 3-7/36\r\n"); });
  World world;
  CHECK(world.get(server.endpoint(), Range{3, 5}).error().code == Errc::io);
}

TEST_CASE("reader: an encoded body is an error, though identity was asked for") {
  Responder server([](const Asked&) { return http_answer(200, "x", "Content-Encoding: gzip\r\n"); });
  World world;
  CHECK(world.get(server.endpoint()).error().code == Errc::io);
  CHECK(world.get_text(server.endpoint()).error().code == Errc::io);
}

TEST_CASE("reader: a range goes on after its last byte if the connection ends") {
  Responder server([](const Asked& asked) { return range_answer(asked, kContent, asked.number < 4 ? 3 : 100); });
  World world;
  REQUIRE(world.get(server.endpoint(), Range{2, 20}).ok());
  CHECK(world.body == kContent.substr(2, 20));
  REQUIRE(server.requests() == 4);
  CHECK(server.heads()[1].find("\r\nRange: bytes=5-21\r\n") != std::string::npos);
  CHECK(server.heads()[3].find("\r\nRange: bytes=11-21\r\n") != std::string::npos);
}

TEST_CASE("reader: a range whose bytes are all there needs no end of the answer") {
  Responder server([](const Asked&) {
    return "HTTP/1.1 206 X\r\nTransfer-Encoding: chunked\r\nContent-Range: bytes 0-4/36\r\n\r\n5\r\n01234\r\n";
  });
  World world;
  CHECK(world.get(server.endpoint(), Range{0, 5}).ok());
  CHECK(world.body == "01234");
  CHECK(server.requests() == 1);
}

TEST_CASE("reader: a server that always ends too early is given up") {
  Responder server([](const Asked& asked) { return range_answer(asked, kContent, 1); });
  World world;
  CHECK(world.get(server.endpoint(), Range{0, 20}).error().code == Errc::timed_out);
  CHECK(server.requests() == world.options.tries_max);
  CHECK(world.body == kContent.substr(0, world.options.tries_max));
}

TEST_CASE("reader: a text is read from its start again, and other bodies are not given to the sink twice") {
  auto answer = [](const Asked& asked) {
    return asked.number == 1 ? "HTTP/1.1 200 X\r\nContent-Length: 10\r\n\r\n01234" : http_answer(200, "0123456789");
  };
  World world;
  Responder text(answer);
  REQUIRE(world.get_text(text.endpoint()).ok());
  CHECK(world.body == "0123456789");
  Responder bytes(answer);
  CHECK(world.get(bytes.endpoint()).error().code == Errc::timed_out);
  CHECK(world.body == "01234");
  CHECK(bytes.requests() == 1);
}

TEST_CASE("reader: a text that always ends too early is given up, however much of it comes") {
  Responder server(
      [](const Asked&) { return "HTTP/1.1 200 X\r\nContent-Length: 9000000\r\n\r\n" + std::string(2'000'000, 'x'); });
  World world;
  HttpRead read;
  read.url = server.endpoint();
  read.body_max = 9'000'000;
  std::string text;
  CHECK(HttpReader(world.options).get_text(read, text).error().code == Errc::timed_out);
  CHECK(server.requests() == world.options.tries_max);
}

TEST_CASE("reader: pauses double, up to their bound") {
  Responder server([](const Asked&) { return http_answer(503, ""); });
  World world;
  world.options.tries_max = 4;
  const auto result = world.get(server.endpoint());
  CHECK(result.error().code == Errc::unreachable);
  CHECK(result.error().message.find("503") != std::string::npos);
  CHECK(server.requests() == 4);
  CHECK(world.passed() == doctest::Approx(1 + 2 + 4));
  World bounded;
  bounded.options.tries_max = 6;
  bounded.options.pause_max = 3s;
  CHECK_FALSE(bounded.get(server.endpoint()).ok());
  CHECK(bounded.passed() == doctest::Approx(1 + 2 + 3 + 3 + 3));
}

TEST_CASE("reader: a server may ask for another pause, within a bound") {
  auto pause_after = [](const std::string& fields) {
    Responder server([&](const Asked& asked) {
      return asked.number == 1 ? http_answer(429, "", fields) : http_answer(200, "bytes");
    });
    World world;
    CHECK(world.get(server.endpoint()).ok());
    CHECK(world.body == "bytes");
    return world.passed();
  };
  CHECK(pause_after("Retry-After: 7\r\n") == doctest::Approx(7));
  CHECK(pause_after("Retry-After: 0\r\n") == doctest::Approx(0));
  CHECK(pause_after("Retry-After: 99999999999999999\r\n") == doctest::Approx(300));
  CHECK(pause_after("Retry-After: Wed, 21 Oct 2015 07:28:00 GMT\r\n") == doctest::Approx(1));
  CHECK(pause_after("RateLimit: \"api\";r=0;t=55\r\n") == doctest::Approx(55));
  CHECK(pause_after("RateLimit: nonsense\r\n") == doctest::Approx(1));
}

TEST_CASE("reader: 429 for ever is busy") {
  Responder server([](const Asked&) { return http_answer(429, "", "Retry-After: 10\r\n"); });
  World world;
  CHECK(world.get(server.endpoint()).error().code == Errc::busy);
  CHECK(server.requests() == world.options.tries_max);
  CHECK(world.passed() == doctest::Approx(10.0 * (world.options.tries_max - 1)));
}

TEST_CASE("reader: a server that is away is asked again") {
  World world;
  world.options.tries_max = 3;
  CHECK(world.get("http://127.0.0.1:1/").error().code == Errc::unreachable);
  CHECK(world.passed() == doctest::Approx(1 + 2));
}

TEST_CASE("reader: other statuses are for the caller, and their bodies for nobody") {
  Responder server([](const Asked&) { return http_answer(404, "not here", "X-Error-Code: EntryNotFound\r\n"); });
  World world;
  const auto result = world.get(server.endpoint());
  REQUIRE(result.ok());
  CHECK(result->last.status == 404);
  CHECK(*result->last.field("x-error-code") == "EntryNotFound");
  CHECK(world.body.empty());
  CHECK(server.requests() == 1);
}

TEST_CASE("reader: a body beyond the limit of its call is an error") {
  Responder server([](const Asked&) { return http_answer(200, std::string(1'001, 'x')); });
  World world;
  CHECK(world.get(server.endpoint()).error().code == Errc::io);
  CHECK(world.get_text(server.endpoint()).error().code == Errc::io);
}

TEST_CASE("reader: an error of the sink ends the read, whatever its kind is") {
  Responder server([](const Asked& asked) { return range_answer(asked, kContent); });
  World world;
  for (const Errc code : {Errc::no_space, Errc::timed_out}) {
    world.sink_answer = Error{code, "the sink refuses"};
    const auto result = world.get(server.endpoint(), Range{0, 5});
    REQUIRE_FALSE(result.ok());
    CHECK(result.error().code == code);
    CHECK(result.error().message == "the sink refuses");
  }
  CHECK(server.requests() == 2);
}

TEST_CASE("reader: a stop ends a pause and a transfer") {
  std::atomic<bool> stop{false};
  World world;
  world.options.stopped = [&] { return stop.load(); };
  Responder busy([&](const Asked&) {
    stop = true;
    return http_answer(503, "");
  });
  CHECK(world.get(busy.endpoint()).error().code == Errc::cancelled);
  CHECK(busy.requests() == 1);
  stop = false;
  const HttpServer* self = nullptr;
  HttpServer silent([&](int, auto&, auto&) {
    stop = true;
    while (self == nullptr || !self->stopping()) std::this_thread::sleep_for(5ms);
  });
  self = &silent;
  CHECK(world.get(silent.endpoint()).error().code == Errc::cancelled);
}

TEST_CASE("reader: a connection that stalls is an error") {
  const HttpServer* self = nullptr;
  HttpServer stalling([&](int fd, auto&, auto&) {
    send_text(fd, "HTTP/1.1 200 X\r\nContent-Length: 100\r\n\r\nsome");
    while (self == nullptr || !self->stopping()) std::this_thread::sleep_for(5ms);
  });
  self = &stalling;
  World world;
  world.options.stall_max = 1s;
  const auto result = world.get(stalling.endpoint());
  REQUIRE_FALSE(result.ok());
  CHECK(result.error().code == Errc::timed_out);
  CHECK(result.error().message.find("bytes a second") != std::string::npos);
  CHECK(world.body == "some");
}

TEST_CASE("reader: a server that repeats the token does not get it into heads, texts or messages") {
  Responder server([](const Asked& asked) {
    if (asked.path == "/text") return http_answer(200, "say " + kToken + " again", "X-Echo: " + kToken + "\r\n");
    return http_answer(206, "x", "Content-Range: bytes " + kToken + "\r\n");
  });
  World world(server.endpoint());
  const auto text = world.get_text(server.endpoint() + "/text");
  REQUIRE(text.ok());
  CHECK(world.body == "say [token] again");
  CHECK(*text->last.field("x-echo") == "[token]");
  const auto range = world.get(server.endpoint() + "/range", Range{0, 1});
  REQUIRE_FALSE(range.ok());
  CHECK(range.error().message.find("Secret") == std::string::npos);
}
