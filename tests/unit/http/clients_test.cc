// Clients that are slow, silent or many.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "fakes/stepped_time.h"
#include "http/connections.h"
#include "http/server.h"
#include "os/unix_socket.h"
#include "raw_client.h"
#include "testing.h"

namespace weft {
namespace {

using namespace std::chrono_literals;
using testing::body_of;
using testing::must;
using testing::RawClient;

HttpReply page(const HttpRequest& request) {
  return http_text(200, request.path.text);
}

// A client that makes the server look at its clock.
void knock(const HttpServer& server) {
  RawClient client(server.port());
  CHECK(body_of(client.ask("GET", "/knock")) == "/knock");
}

TEST_CASE("a slow client has a bounded time for its request, and other clients do not wait for it") {
  testing::SteppedTime time;
  const auto server = must(HttpServer::open({.patience = 60s}, page, time));
  RawClient slow(server->port());
  CHECK(slow.send("G"));
  knock(*server);
  time.pass(59s);
  CHECK(slow.send("E"));
  knock(*server);
  time.pass(1s);
  knock(*server);
  CHECK(slow.all().empty());  // the server has closed the connection
}

TEST_CASE("a client has its time for each request") {
  testing::SteppedTime time;
  const auto server = must(HttpServer::open({.patience = 60s}, page, time));
  RawClient client(server->port());
  for (int i = 0; i < 3; ++i) {
    CHECK(body_of(client.ask("GET", "/a")) == "/a");
    time.pass(59s);
    knock(*server);
  }
  // The client has an answer before the server notes its end, from which the time for the next request counts.
  while (!client.is_closed()) {
    time.pass(60s);
    knock(*server);
  }
  CHECK(client.all().empty());
}

TEST_CASE("a handler may take longer than the time of a client") {
  testing::SteppedTime time;
  std::atomic<HttpServer*> self = nullptr;
  const auto server = must(HttpServer::open(
      {.patience = 60s},
      [&](const HttpRequest& request) {
        if (request.path.text != "/knock") {
          time.pass(600s);
          knock(*self.load());
        }
        return page(request);
      },
      time));
  self = server.get();
  RawClient client(server->port());
  CHECK(body_of(client.ask("GET", "/long")) == "/long");
}

// A file of 64 MiB without blocks.
struct LargeFile {
  static constexpr std::size_t kSize = 64U << 20U;
  testing::TempDir dir;
  LargeFile() {
    testing::write_file(dir / "file", "");
    REQUIRE(::truncate((dir / "file").c_str(), kSize) == 0);
  }
  HttpReply reply(const HttpRequest& request) const {
    if (request.path.text == "/knock") return page(request);
    HttpReply reply;
    reply.body = HttpFile{must(open_file(dir / "file", O_RDONLY)), 0, kSize};
    return reply;
  }
};

TEST_CASE("a client that takes nothing of an answer is dropped, and one that takes enough is not") {
  const LargeFile file;
  testing::SteppedTime time;
  const auto server = must(HttpServer::open(
      {.patience = 60s}, [&](const HttpRequest& request) { return file.reply(request); }, time));
  RawClient stuck(server->port(), 65'536);
  RawClient reader(server->port(), 65'536);
  CHECK(stuck.send(RawClient::request("GET", "/f")));
  CHECK(stuck.more());
  CHECK(reader.send(RawClient::request("GET", "/f", "Connection: close\r\n")));
  CHECK(reader.receive(2U << 20U));  // more than 60 s * 16 KiB, even if the kernel acknowledges the last part later
  time.pass(60s);
  knock(*server);
  CHECK(stuck.all().size() < LargeFile::kSize);
  CHECK(reader.all().size() > LargeFile::kSize);  // with the header
}

// A connection over loopback, with the server's end of it.
struct Pair {
  Fd listener = must(listen_tcp("127.0.0.1", 0, 1, "pair"));
  RawClient client{must(bound_port(listener.get(), "pair"))};
  Fd server = must(accept_socket(listener.get()));
};

TEST_CASE("a client that takes a content slowly is dropped, however often the content is read") {
  testing::SteppedTime time;
  Pair pair;
  HttpConnections connections(8, 60s, time);
  const int socket = pair.server.get();
  connections.started(socket);
  connections.sending(socket);
  for (int read = 0; read < 3; ++read) {
    connections.waiting(socket);
    time.pass(600s);  // for the bytes, which is not the client's time
    connections.tend(false);
    connections.resumed(socket);
    connections.tend(false);
    CHECK(!pair.client.is_closed());
    time.pass(20s);
  }
  connections.tend(false);
  CHECK(pair.client.is_closed());
}

TEST_CASE("silent clients do not block others") {
  const auto server = must(HttpServer::open({.connections_max = 8, .patience = 600s}, page));
  std::vector<std::unique_ptr<RawClient>> silent;
  for (int i = 0; i < 20; ++i) silent.push_back(std::make_unique<RawClient>(server->port()));
  for (int i = 0; i < 20; ++i) knock(*server);
}

TEST_CASE("clients beyond the limit are served once others are, and none is sent away") {
  std::atomic<int> running = 0, most = 0;
  const testing::SteppedTime time;  // no client waits for so long that its connection could end for another one
  const auto server = must(HttpServer::open(
      {.connections_max = 4, .patience = 600s},
      [&](const HttpRequest& request) {
        const int now = ++running;
        for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
        }
        std::this_thread::yield();
        --running;
        return page(request);
      },
      time));
  std::vector<std::thread> clients;
  std::atomic<int> answers = 0;
  for (int i = 0; i < 16; ++i) {
    clients.emplace_back([&] {
      RawClient client(server->port());
      if (body_of(client.ask("GET", "/a")) == "/a") ++answers;
    });
  }
  for (std::thread& client : clients) client.join();
  CHECK(answers == 16);
  CHECK(most <= 4);
}

TEST_CASE("a client that sends nothing does not keep the server from ending") {
  const testing::SteppedTime time;  // the patience never ends
  auto server = must(HttpServer::open({.patience = 60s}, page, time));
  RawClient silent(server->port());
  CHECK(silent.send("G"));
  knock(*server);  // the server has accepted the silent client before
  server.reset();
  CHECK(silent.all().empty());
}

TEST_CASE("connections that the server ends, and the bytes of all, are counted") {
  testing::SteppedTime time;
  const auto server = must(HttpServer::open({.patience = 60s}, page, time));
  RawClient client(server->port());
  const std::string answer = client.ask("GET", "/some/path");
  while (server->counts().bytes < answer.size()) std::this_thread::sleep_for(1ms);
  CHECK(server->counts().connections == 1);
  CHECK(server->counts().slow == 0);
  while (!client.is_closed()) {
    time.pass(60s);
    RawClient other(server->port());
    CHECK(body_of(other.ask("GET", "/knock")) == "/knock");
  }
  CHECK(client.all().empty());
  while (server->counts().slow == 0) std::this_thread::sleep_for(1ms);
  CHECK(server->counts().crowded == 0);
  CHECK(server->counts().bytes >= answer.size());
}

}  // namespace
}  // namespace weft
