// Clients that do not keep to the protocol, or mean harm: the others are served all the same.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>

#include <array>

#include "base/limits.h"
#include "control/client.h"
#include "control/server.h"
#include "testing.h"

namespace weft::control {
namespace {

using namespace std::chrono_literals;

struct Served {
  testing::TempDir dir;
  std::atomic<bool> overrun = false;
  std::unique_ptr<Server> server;  // goes first: its handlers use the others

  Served() {
    server = std::move(Server::listen(dir / kSocketName, {})).value();
    server->on("ask", Runs::at_once, [](const auto& call) { call->answer(""); });
    server->on("hold", Runs::own_thread, [this](const std::shared_ptr<Call>& call) {
      while (!call->cancelled() && !overrun) {
        std::this_thread::sleep_for(1ms);
        const auto more = call->next(0ms);
        overrun = !more.ok() && more.error().code == Errc::invalid;
      }
      call->answer("");
    });
    server->start();
  }
  Fd raw() const { return std::move(connect_unix(dir / kSocketName)).value(); }
  bool answers() const {
    auto client = Client::connect(dir / kSocketName);
    return client.ok() && (*client)->call("ask", "", {}, {.patience = 30s}).ok();
  }
};

// Sends all, or until the other end has had enough.
void send_all(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    auto sent = send_some(socket, testing::as_bytes(bytes));
    if (!sent.ok()) return;
    bytes.remove_prefix(*sent);
    if (*sent == 0) wait_for(socket, POLLOUT, 10s);
  }
}

// What comes until the other end closes.
bool closed(int socket) {
  std::array<std::byte, 4096> bytes{};
  while (wait_for(socket, POLLIN, 30s)) {
    auto received = receive_some(socket, bytes);
    if (!received.ok() || received->end) return true;
  }
  return false;
}

TEST_CASE("bytes that are no message end the connection that sent them, and no other") {
  Served served;
  const std::string framed_nonsense("\x05\0\0\0hello", 9);
  const std::string too_long("\xff\xff\xff\x7f", 4);
  const std::string fds_that_are_not_there = *encode_message({1, MessageKind::request, "ask", "", 3});
  const std::string an_answer = *encode_message({1, MessageKind::answer});
  for (const std::string& bytes : {framed_nonsense, too_long, fds_that_are_not_there, an_answer}) {
    const Fd socket = served.raw();
    send_all(socket.get(), bytes);
    CHECK(closed(socket.get()));
    CHECK(served.answers());
  }
}

TEST_CASE("one number for two requests in flight ends the connection") {
  Served served;
  const Fd socket = served.raw();
  const std::string request = *encode_message({9, MessageKind::request, "hold"});
  send_all(socket.get(), request + request);
  CHECK(closed(socket.get()));
  CHECK(served.answers());
}

TEST_CASE("a connection that is cut in the middle of a message leaves nothing behind") {
  Served served;
  const std::string request = *encode_message({9, MessageKind::request, "hold"});
  for (std::size_t size = 1; size < request.size(); ++size) {
    const Fd socket = served.raw();
    send_all(socket.get(), std::string_view(request).substr(0, size));
  }
  CHECK(served.answers());
  CHECK(served.server->drain(30s, 0s));
}

TEST_CASE("descriptors that no message counts end the connection") {
  Served served;
  const Fd null = std::move(open_file("/dev/null", O_RDONLY)).value();
  const Fd socket = served.raw();
  const std::vector<int> fds(kFdsAtOnceMax, null.get());
  for (int i = 0; i < 3; ++i)
    static_cast<void>(send_some(socket.get(), testing::as_bytes(std::string_view("\0", 1)), fds));
  CHECK(closed(socket.get()));
  CHECK(served.answers());
}

TEST_CASE("more messages than a handler takes are not kept") {
  Served served;
  const Fd socket = served.raw();
  std::string bytes = *encode_message({1, MessageKind::request, "hold"});
  const std::string more = *encode_message({1, MessageKind::more});
  for (std::size_t i = 0; i < 100 * limits::kControlUnreadMax; ++i) bytes += more;
  send_all(socket.get(), bytes);
  for (int i = 0; i < 30'000 && !served.overrun; ++i) std::this_thread::sleep_for(1ms);
  CHECK(served.overrun);
  CHECK(served.answers());
}

TEST_CASE("who reads no answers is broken off when too many wait for it") {
  const std::string big = "{\"x\":\"" + std::string(900'000, 'x') + "\"}";
  testing::TempDir dir;
  std::atomic<int> taken = 0;
  auto server = std::move(Server::listen(dir / kSocketName, {})).value();
  server->on("big", Runs::at_once, [&](const auto& call) {
    call->answer(big);
    ++taken;
  });
  server->start();
  const Fd socket = std::move(connect_unix(dir / kSocketName)).value();
  for (std::uint64_t id = 0; id < 40; ++id) send_all(socket.get(), *encode_message({id, MessageKind::request, "big"}));
  for (int i = 0; i < 30'000 && (taken == 0 || server->connections() > 0); ++i) std::this_thread::sleep_for(1ms);
  CHECK(server->connections() == 0);
  CHECK(closed(socket.get()));
}

}  // namespace
}  // namespace weft::control
