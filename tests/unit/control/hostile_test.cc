// Hostile and misbehaving clients: all other clients are served as usual.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>

#include <array>
#include <mutex>

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
  std::unique_ptr<Server> server;  // destroyed first: its handlers use the members above

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

// Sends all bytes, or until the other end closes.
void send_all(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    auto sent = send_some(socket, testing::as_bytes(bytes));
    if (!sent.ok()) return;
    bytes.remove_prefix(*sent);
    if (*sent == 0) wait_for(socket, POLLOUT, 10s);
  }
}

// Reads until the other end closes. False if it does not close within 30 s of the last byte.
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
  REQUIRE(send_some(socket.get(), testing::as_bytes(std::string_view("\0", 1)), fds).ok());
  CHECK(closed(socket.get()));
  CHECK(served.answers());
}

// A server that takes its clients for users that the test names, one after the other.
struct Users {
  testing::TempDir dir;
  std::atomic<uid_t> next = 0;
  std::atomic<std::uint64_t> looked = 0;
  std::mutex mutex;
  std::vector<std::shared_ptr<Call>> held;  // guarded by mutex
  std::unique_ptr<Server> server;
  std::vector<Fd> sockets;

  explicit Users(std::chrono::milliseconds patience = 60s) {
    ServerOptions options;
    options.message_patience = patience;
    options.who = [this](int socket) -> Result<PeerCredentials> {
      WEFT_TRY(PeerCredentials peer, peer_credentials(socket));
      peer.uid = next;
      ++looked;
      return peer;
    };
    server = std::move(Server::listen(dir / kSocketName, options)).value();
    server->on("ask", Runs::at_once, [](const auto& call) { call->answer(""); });
    server->on("keep", Runs::at_once, [this](const auto& call) {
      const std::lock_guard lock(mutex);
      held.push_back(call);
    });
    server->on("wait", Runs::own_thread, [](const std::shared_ptr<Call>& call) {
      static_cast<void>(call->next(60s));
      call->answer("");
    });
    server->on("run", Runs::own_thread, [](const auto& call) { call->answer(""); });
    server->start();
  }
  ~Users() { held.clear(); }

  // Connects as `user`. Returns when the server has read the peer's user id.
  int connect(uid_t user) {
    next = user;
    const std::uint64_t before = looked;
    sockets.push_back(std::move(connect_unix(dir / kSocketName)).value());
    while (looked == before) std::this_thread::yield();
    return sockets.back().get();
  }
  Result<Answer> ask(uid_t user, std::string_view request) {
    next = user;
    auto client = Client::connect(dir / kSocketName);
    if (!client.ok()) return client.error();
    return (*client)->call(request, "", {}, {.patience = 30s});
  }
  // Sends a request with `count` descriptors. True if the server accepted them and a handler keeps them.
  bool keep_fds(int socket, std::uint64_t id, std::size_t count) {
    const Fd null = std::move(open_file("/dev/null", O_RDONLY)).value();
    const std::vector<int> fds(count, null.get());
    const std::string text = *encode_message({id, MessageKind::request, "keep", {}, count});
    const std::size_t before = kept();
    REQUIRE(send_some(socket, testing::as_bytes(text), fds).ok());
    while (kept() == before)
      if (wait_for(socket, POLLIN, 1ms)) return false;
    return true;
  }
  std::size_t kept() {
    const std::lock_guard lock(mutex);
    return held.size();
  }
};

constexpr uid_t kAlice = 4711, kBob = 4712;

TEST_CASE("a user with all connections that one may have keeps out neither others nor root") {
  Users users;
  const std::string five("\x10\0\0\0{", 5);
  for (std::size_t i = 0; i < limits::kControlConnectionsMax; ++i) {
    const int socket = users.connect(kAlice);
    static_cast<void>(send_some(socket, testing::as_bytes(five)));
    // The first connections are accepted and stay. Each later one gets an error and is closed.
    if (i >= limits::kControlConnectionsEachMax) CHECK(closed(socket));
  }
  CHECK(users.server->connections() == limits::kControlConnectionsEachMax);
  CHECK(users.ask(kBob, "ask").ok());
  CHECK(users.ask(0, "ask").ok());
  const auto refused = users.ask(kAlice, "ask");
  CHECK(refused.error().code == Errc::busy);
  CHECK(refused.error().message.find("user 4711, or all users, have too many connections") != std::string::npos);
  users.sockets.clear();
  for (int i = 0; i < 30'000 && !users.ask(kAlice, "ask").ok(); ++i) std::this_thread::sleep_for(1ms);
  CHECK(users.ask(kAlice, "ask").ok());
}

TEST_CASE("all users together leave places to root") {
  Users users;
  std::size_t taken = 0;
  for (uid_t user = 5000; user < 5016; ++user)
    for (std::size_t i = 0; i < limits::kControlConnectionsEachMax; ++i) {
      users.connect(user);
      while (users.server->connections() == taken && !wait_for(users.sockets.back().get(), POLLIN, 1ms)) {
      }
      taken = users.server->connections();
    }
  CHECK(taken == limits::kControlConnectionsOthersMax);
  CHECK(users.ask(kBob, "ask").error().code == Errc::busy);
  CHECK(users.ask(0, "ask").ok());
}

TEST_CASE("an incomplete message ends its connection after a time; an idle connection stays") {
  Users users(200ms);
  const int silent = users.connect(kAlice);
  const std::string request = *encode_message({1, MessageKind::request, "ask"});
  const int stops = users.connect(kAlice);
  send_all(stops, request + request.substr(0, 5));
  // A byte now and then does not extend the time limit.
  const int drips = users.connect(kAlice);
  bool over = false;
  for (std::size_t i = 0; i < request.size() - 1 && !over; ++i) {
    over = !send_some(drips, testing::as_bytes(std::string_view(request).substr(i, 1))).ok();
    std::this_thread::sleep_for(20ms);
  }
  CHECK(over);
  CHECK(closed(stops));
  CHECK(closed(drips));
  send_all(silent, request);
  CHECK(wait_for(silent, POLLIN, 30s));
  CHECK(users.server->connections() == 1);
}

TEST_CASE("the descriptors of one user are bounded over all connections") {
  Users users;
  std::size_t taken = 0;
  for (std::size_t i = 0; i < 8; ++i)
    if (users.keep_fds(users.connect(kAlice), 1, kFdsAtOnceMax)) taken += kFdsAtOnceMax;
  CHECK(taken == limits::kControlFdsEachMax);
  CHECK(users.keep_fds(users.connect(0), 1, kFdsAtOnceMax));
  CHECK(users.keep_fds(users.connect(kBob), 1, kFdsAtOnceMax));
  {
    const std::lock_guard lock(users.mutex);
    users.held.clear();
  }
  CHECK(users.keep_fds(users.connect(kAlice), 1, kFdsAtOnceMax));
}

TEST_CASE("requests of a user that last long leave threads to others and to root") {
  Users users;
  for (uid_t user = 5000; user < 5008; ++user) {
    const int socket = users.connect(user);
    std::string requests;
    for (std::uint64_t id = 0; id < limits::kControlRunningEachMax + 1; ++id)
      requests += *encode_message({id, MessageKind::request, "wait"});
    send_all(socket, requests);
    CHECK(wait_for(socket, POLLIN, 30s));  // the last request, if no other, is refused
    if (user == 5000) CHECK(users.ask(kBob, "run").ok());
  }
  CHECK(users.ask(kBob, "run").error().code == Errc::busy);
  CHECK(users.ask(0, "run").ok());
  users.sockets.clear();
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

TEST_CASE("a client that does not read is disconnected when too many answers wait") {
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
