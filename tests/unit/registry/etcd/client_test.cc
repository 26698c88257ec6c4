// The client against servers that are no etcd, hostile, or hanging.
#include <doctest/doctest.h>

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "base/limits.h"
#include "fakes/http_server.h"
#include "registry/etcd/etcd_client.h"

using namespace weft;
using namespace weft::etcd;
using namespace weft::testing;
using namespace std::chrono_literals;

namespace {

using Clock = std::chrono::steady_clock;

const std::string kGood = R"({"header":{"revision":"7"},"kvs":[{"key":"Zm9v"}]})";
const RangeQuery kFoo{{"foo", ""}, 0, 0, false, false};

// No answer that a test waits for takes so long, also not on a machine that is busy with other work.
constexpr auto kPatience = 60s;

// `answer_max`: shorter if some endpoint hangs.
EtcdOptions options_for(std::vector<std::string> endpoints, std::chrono::milliseconds answer_max = kPatience) {
  EtcdOptions options;
  options.endpoints = std::move(endpoints);
  options.connect_max = kPatience;
  options.answer_max = answer_max;
  return options;
}

Txn a_put() {
  Txn txn;
  txn.then.emplace_back(Put{"foo", {}, 0});
  return txn;
}

// Returns the error of a request to a server with this answer.
Errc range_error(const std::string& raw_answer) {
  HttpServer server([&](int fd, auto&, auto&) { send_text(fd, raw_answer); });
  Client client(options_for({server.endpoint()}));
  auto answer = client.range(kFoo);
  REQUIRE_FALSE(answer.ok());
  return answer.error().code;
}

// Returns `count` once it is at least `least`, or after kPatience.
int awaited(const std::atomic<int>& count, int least) {
  for (const auto end = Clock::now() + kPatience; count < least && Clock::now() < end;)
    std::this_thread::sleep_for(1ms);
  return count;
}

void hang(const HttpServer* const& server) {
  while (server == nullptr || !server->stopping()) std::this_thread::sleep_for(5ms);
}

std::string stream_head() {
  return "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n";
}

}  // namespace

TEST_CASE("client: if an endpoint does not answer, the next one is used") {
  HttpServer server([](int fd, auto& path, auto& body) {
    CHECK(path == "/v3/kv/range");
    CHECK(body == encode(kFoo));
    send_text(fd, http_answer(200, kGood));
  });
  Client client(options_for({"http://127.0.0.1:1", server.endpoint()}));
  auto answer = client.range(kFoo);
  REQUIRE(answer.ok());
  CHECK(answer->items[0].key == "foo");
  CHECK(client.endpoint() == server.endpoint());
}

TEST_CASE("client: cut, empty, wrong and endless answers are errors") {
  CHECK(range_error("") == Errc::timed_out);
  CHECK(range_error("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"header\"") == Errc::timed_out);
  CHECK(range_error(http_answer(200, "")) == Errc::io);
  CHECK(range_error(http_answer(200, kGood.substr(0, 30))) == Errc::io);
  CHECK(range_error(http_answer(200, R"({"header":{},"kvs":[{"key":"!!!!"}]})")) == Errc::io);
  CHECK(range_error(http_answer(200, "<html>")) == Errc::io);
  CHECK(range_error(http_answer(404, "Not Found")) == Errc::invalid);
  CHECK(range_error(http_answer(301, "")) == Errc::invalid);
  CHECK(range_error("\x16\x03\x01 this is no HTTP") != Errc::internal);
  CHECK(range_error(http_answer(200, std::string(limits::kEtcdAnswerMax + 1, ' '))) == Errc::io);
}

TEST_CASE("client: nobody there is unreachable; a change that got no answer may have happened, and is not sent twice") {
  Client nobody(options_for({"http://127.0.0.1:1"}));
  CHECK(nobody.range(kFoo).error().code == Errc::unreachable);
  CHECK(nobody.txn(a_put()).error().code == Errc::unreachable);

  std::atomic<int> received{0};
  const HttpServer* self = nullptr;
  HttpServer server([&](int, auto&, auto&) {
    ++received;
    hang(self);
  });
  self = &server;
  Client client(options_for({server.endpoint(), server.endpoint()}, 1s));
  CHECK(client.txn(a_put()).error().code == Errc::timed_out);
  CHECK(awaited(received, 1) == 1);
  CHECK(client.range(kFoo).error().code == Errc::timed_out);
  CHECK(awaited(received, 3) == 3);  // a read may be sent to both endpoints
}

TEST_CASE("client: a change goes to the next endpoint only after a definite refusal") {
  const std::string stopped = R"({"code":14,"message":"etcdserver: server stopped"})";
  const std::string no_leader = R"({"code":14,"message":"etcdserver: no leader"})";
  auto sent = [](const std::string& raw_answer, Errc expected) {
    std::atomic<int> received{0};
    auto answer = [&](int fd, auto&, auto&) {
      ++received;
      send_text(fd, raw_answer);
    };
    HttpServer first(answer);
    HttpServer second(answer);
    Client client(options_for({first.endpoint(), second.endpoint()}));
    CHECK(client.txn(a_put()).error().code == expected);
    return received.load();
  };
  CHECK(sent(http_answer(503, stopped), Errc::timed_out) == 1);
  CHECK(sent(http_answer(408, R"({"code":1,"message":"context canceled"})"), Errc::timed_out) == 1);
  CHECK(sent(http_answer(408, ""), Errc::timed_out) == 1);
  CHECK(sent(http_answer(200, std::string(limits::kEtcdAnswerMax + 1, ' ')), Errc::timed_out) == 1);
  CHECK(sent(http_answer(200, "<html>"), Errc::timed_out) == 1);
  CHECK(sent("", Errc::timed_out) == 1);
  CHECK(sent(http_answer(503, no_leader), Errc::unreachable) == 2);
}

TEST_CASE("client: a slow endpoint leaves the next its time") {
  const HttpServer* self = nullptr;
  HttpServer slow([&](int, auto&, auto&) { hang(self); });
  self = &slow;
  HttpServer good([](int fd, auto&, auto&) { send_text(fd, http_answer(200, kGood)); });
  Client client(options_for({slow.endpoint(), good.endpoint()}, 4s));
  CHECK(client.range(kFoo).ok());
  CHECK(client.endpoint() == good.endpoint());
}

TEST_CASE("client: what cannot be is refused before anything is asked") {
  for (const char* bad : {"", "host:2379", "ftp://host", "http://", "http://host/", "http://a b", "file:///etc/passwd"})
    CHECK(Client::check(options_for({bad})).error().code == Errc::invalid);
  CHECK_FALSE(Client::check(options_for({})).ok());
  EtcdOptions half = options_for({"https://host:1"});
  CHECK(Client::check(half).ok());
  half.cert = "x";
  CHECK_FALSE(Client::check(half).ok());
}

TEST_CASE("watch: lines come as they are sent, parts of one revision as one") {
  const std::string created = R"({"result":{"header":{"revision":"7"},"created":true}})";
  const std::string part = R"({"result":{"header":{"revision":"8"},"fragment":true,"events":[{"kv":{"key":"Zm9v"}}]}})";
  const std::string last = R"({"result":{"header":{"revision":"8"},"events":[{"kv":{"key":"Zm8="}}]}})";
  HttpServer server([&](int fd, auto&, auto&) {
    send_text(fd, stream_head() + created + "\n" + part.substr(0, 20));
    std::this_thread::sleep_for(30ms);
    send_text(fd, part.substr(20) + "\n" + last + "\n" + last + "\n");
  });
  Client client(options_for({server.endpoint()}));
  auto watch = client.watch(prefixed("f"), 1);
  REQUIRE(watch.ok());
  auto both = (*watch)->next(Clock::now() + kPatience);
  REQUIRE(both.ok());
  REQUIRE(both->has_value());
  CHECK((*both)->events.size() == 2);
  auto again = (*watch)->next(Clock::now() + kPatience);
  REQUIRE(again.ok());
  CHECK((*again)->events.size() == 1);
  CHECK((*watch)->next(Clock::now() + kPatience).error().code == Errc::unreachable);
}

TEST_CASE("watch: compacted, refused, garbage, endless lines, silence") {
  auto watch_error = [](const std::string& stream) {
    HttpServer server([&](int fd, auto&, auto&) { send_text(fd, stream); });
    Client client(options_for({server.endpoint()}));
    auto watch = client.watch(prefixed("f"), 1);
    if (!watch.ok()) return watch.error().code;
    auto next = (*watch)->next(Clock::now() + kPatience);
    return next.ok() ? Errc::internal : next.error().code;
  };
  const std::string created = stream_head() + R"({"result":{"header":{"revision":"7"},"created":true}})" + "\n";
  CHECK(watch_error(created + R"({"result":{"header":{},"canceled":true,"compact_revision":"3"}})" + "\n") ==
        Errc::changed);
  CHECK(watch_error(created + R"({"result":{"header":{},"canceled":true,"cancel_reason":"x"}})" + "\n") ==
        Errc::unreachable);
  CHECK(watch_error(created + R"({"error":{"grpc_code":14,"message":"etcdserver: no leader"}})") == Errc::unreachable);
  CHECK(watch_error(created + "rubbish\n") == Errc::io);
  CHECK(watch_error(created + std::string(limits::kEtcdAnswerMax + 1, 'a')) == Errc::io);
  CHECK(watch_error(http_answer(401, R"({"code":16,"message":"etcdserver: invalid auth token"})")) == Errc::permission);
  CHECK(watch_error("") == Errc::unreachable);

  const HttpServer* self = nullptr;
  HttpServer silent([&](int fd, auto&, auto&) {
    send_text(fd, created);
    hang(self);
  });
  self = &silent;
  Client client(options_for({silent.endpoint()}));
  auto watch = client.watch(prefixed("f"), 1);
  REQUIRE(watch.ok());
  auto nothing = (*watch)->next(Clock::now() + 50ms);
  REQUIRE(nothing.ok());
  CHECK_FALSE(nothing->has_value());
  std::thread waker([&] {
    std::this_thread::sleep_for(50ms);
    (*watch)->wake();
  });
  CHECK((*watch)->next(Clock::now() + 1h).ok());  // ends by wake()
  waker.join();
}

TEST_CASE("watch: asked of members that have a leader, and left where requests go elsewhere") {
  const HttpServer* self = nullptr;
  std::atomic<bool> hangs{false};
  const std::string created = stream_head() + R"({"result":{"header":{"revision":"7"},"created":true}})" + "\n";
  HttpServer first([&](int fd, auto& path, auto&) {
    if (path != "/v3/watch" && !hangs) return send_text(fd, http_answer(200, kGood));
    if (path == "/v3/watch") send_text(fd, created);
    hang(self);
  });
  self = &first;
  HttpServer second([](int fd, auto&, auto&) { send_text(fd, http_answer(200, kGood)); });
  Client client(options_for({first.endpoint(), second.endpoint()}, 4s));
  CHECK(client.range(kFoo).ok());
  CHECK(first.last_head().find("hasleader") == std::string::npos);
  auto watch = client.watch(prefixed("f"), 1);
  REQUIRE(watch.ok());
  CHECK(first.last_head().find("\r\nGrpc-Metadata-hasleader: true\r\n") != std::string::npos);
  CHECK(client.range(kFoo).ok());
  CHECK_FALSE(client.has_left(**watch));
  hangs = true;
  CHECK(client.range(kFoo).ok());
  CHECK(client.has_left(**watch));
}

TEST_CASE("client: a login that has expired is done again, once") {
  int logins = 0;
  HttpServer server([&](int fd, auto& path, auto&) {
    if (path == "/v3/auth/authenticate") {
      ++logins;
      return send_text(fd, http_answer(200, R"({"header":{},"token":"t)" + std::to_string(logins) + R"("})"));
    }
    if (logins < 2) return send_text(fd, http_answer(401, R"({"code":16,"message":"etcdserver: invalid auth token"})"));
    send_text(fd, http_answer(200, kGood));
  });
  auto options = options_for({server.endpoint()});
  options.user = "weft";
  options.password = "secret";
  Client client(options);
  CHECK(client.range(kFoo).ok());
  CHECK(logins == 2);
}
