#include "control/server.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <condition_variable>
#include <future>
#include <mutex>
#include <set>
#include <thread>

#include "base/limits.h"
#include "control/client.h"
#include "testing.h"

namespace weft::control {
namespace {

using namespace std::chrono_literals;

// A control server in this process.
struct Served {
  testing::TempDir dir;
  std::string path = dir / kSocketName;
  std::unique_ptr<Server> server;

  Served() { server = std::move(Server::listen(path, {})).value(); }
  std::unique_ptr<Client> start() {
    server->start();
    return client();
  }
  std::unique_ptr<Client> client() const {
    auto made = Client::connect(path);
    REQUIRE(made.ok());
    return std::move(made).value();
  }
};

std::string number(std::uint64_t value) {
  return "{\"n\":" + std::to_string(value) + "}";
}

TEST_CASE("a handler sees the user id of the caller") {
  Served served;
  served.server->on("who", Runs::own_thread, [](const auto& call) { call->answer(number(call->peer().uid)); });
  const auto client = served.start();
  const auto answer = client->call("who", "");
  REQUIRE(answer.ok());
  CHECK(*answer->body.number("n") == ::geteuid());
}

TEST_CASE("a handler's error is passed on; unknown and unanswered requests are errors") {
  Served served;
  served.server->on("fail", Runs::at_once, [](const auto& call) { call->fail({Errc::exists, "it is there"}); });
  served.server->on("drop", Runs::at_once, [](const auto&) {});
  const auto client = served.start();
  const auto failed = client->call("fail", "{}");
  CHECK(failed.error().code == Errc::exists);
  CHECK(failed.error().message == "it is there");
  CHECK(client->call("drop", "").error().code == Errc::internal);
  CHECK(client->call("nothing", "").error().code == Errc::unsupported);
  CHECK(!client->lost());
}

TEST_CASE("requests of many threads run at once over one connection, and each gets its own answer") {
  std::mutex mutex;
  std::vector<std::shared_ptr<Call>> waiting;
  Served served;
  // Answers in reverse order once all requests have arrived.
  constexpr std::size_t kCalls = 64;
  served.server->on("wait", Runs::at_once, [&](const std::shared_ptr<Call>& call) {
    const std::lock_guard lock(mutex);
    waiting.push_back(call);
    if (waiting.size() < kCalls) return;
    for (; !waiting.empty(); waiting.pop_back()) waiting.back()->answer(number(*waiting.back()->body().number("n")));
  });
  const auto client = served.start();
  std::vector<std::future<std::uint64_t>> answers;
  for (std::uint64_t i = 0; i < kCalls; ++i)
    answers.push_back(std::async(std::launch::async, [&client, i] {
      auto answer = client->call("wait", number(i));
      return answer.ok() ? answer->body.number("n").value() : kCalls;
    }));
  for (std::uint64_t i = 0; i < kCalls; ++i) CHECK(answers[i].get() == i);
}

TEST_CASE("a request may take longer than a silence, as long as the daemon shows life") {
  Served served;
  served.server->on("slow", Runs::own_thread, [](const auto& call) {
    std::this_thread::sleep_for(3s);
    call->answer(number(7));
  });
  const auto client = served.start();
  int signs = 0;
  CallOptions options;
  options.silence = 2s;
  options.on_life = [&] { return ++signs > 0; };
  const auto answer = client->call("slow", "", {}, options);
  REQUIRE(answer.ok());
  CHECK(*answer->body.number("n") == 7);
  CHECK(signs > 0);
  options.on_life = [] { return false; };
  CHECK(client->call("slow", "", {}, options).error().code == Errc::cancelled);
}

TEST_CASE("a call to a silent daemon ends after the silence limit") {
  testing::TempDir dir;
  const std::string path = dir / kSocketName;
  const Fd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  REQUIRE(path.size() < sizeof address.sun_path);
  path.copy(address.sun_path, path.size());
  REQUIRE(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  REQUIRE(::listen(listener.get(), 1) == 0);
  auto client = Client::connect(path);
  REQUIRE(client.ok());
  CallOptions options;
  options.silence = 300ms;
  CHECK((*client)->call("ask", "", {}, options).error().code == Errc::timed_out);
}

TEST_CASE("requests of one message run at once, and waiting ones do not block others") {
  constexpr std::size_t kCalls = 40;
  std::mutex mutex;
  std::condition_variable changed;
  std::size_t running = 0;
  Served served;
  served.server->on("meet", Runs::own_thread, [&](const std::shared_ptr<Call>& call) {
    std::unique_lock lock(mutex);
    ++running;
    changed.notify_all();
    const bool all = changed.wait_for(lock, 20s, [&] { return running >= kCalls; });
    call->answer(number(all ? 1 : 0));
  });
  served.server->on("pass", Runs::own_thread, [](const auto& call) { call->answer(number(1)); });
  served.server->start();
  auto socket = connect_unix(served.path);
  REQUIRE(socket.ok());
  std::string together;
  for (std::uint64_t i = 1; i < kCalls; ++i)
    together += std::move(encode_message({i, MessageKind::request, "meet", {}})).value();
  REQUIRE(*send_some(socket->get(), testing::as_bytes(together)) == together.size());
  {
    std::unique_lock lock(mutex);
    REQUIRE(changed.wait_for(lock, 20s, [&] { return running == kCalls - 1; }));
  }
  const auto client = served.client();
  CHECK(client->call("pass", "").ok());
  CHECK(*client->call("meet", "")->body.number("n") == 1);
  CHECK(client->call("pass", "").ok());
  CHECK(served.server->drain(20s, 1s));
}

TEST_CASE("events come in order on the calling thread, and are answered") {
  Served served;
  served.server->on("sum", Runs::own_thread, [](const std::shared_ptr<Call>& call) {
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < 10; ++i) {
      REQUIRE(call->event(number(i)).ok());
      auto more = call->next(10s);
      REQUIRE(more.ok());
      sum += *more->body.number("n");
    }
    call->answer(number(sum));
  });
  const auto client = served.start();
  const auto here = std::this_thread::get_id();
  CallOptions options;
  options.on_event = [&](Message& event, const SendMore& more) {
    CHECK(std::this_thread::get_id() == here);
    return more(number(2 * *event.body.number("n")), {});
  };
  CHECK(*client->call("sum", "", {}, options)->body.number("n") == 90);
}

TEST_CASE("descriptors go both ways") {
  Served served;
  served.server->on("swap", Runs::own_thread, [](const std::shared_ptr<Call>& call) {
    std::vector<Fd> fds = call->take_fds();
    std::reverse(fds.begin(), fds.end());
    const std::string body = number(fds.size());
    call->answer(body, std::move(fds));
  });
  const auto client = served.start();
  std::vector<Fd> fds;
  for (const std::string name : {"a", "b"}) {
    testing::write_file(served.dir / name, name);
    fds.push_back(std::move(open_file(served.dir / name, O_RDONLY)).value());
  }
  auto answer = client->call("swap", "", std::move(fds));
  REQUIRE(answer.ok());
  REQUIRE(answer->fds.size() == 2);
  std::array<std::byte, 1> first{};
  REQUIRE(read_exact(answer->fds[0].get(), 0, first, "b").ok());
  CHECK(testing::as_text(first) == "b");
}

// A handler that waits until it is cancelled.
struct Waiting {
  std::promise<void> began;
  std::promise<void> cancelled;
  void handle(const std::shared_ptr<Call>& call) {
    began.set_value();
    CHECK(call->next(30s).error().code == Errc::cancelled);
    cancelled.set_value();
    call->fail({Errc::cancelled, "stopped"});
  }
};

TEST_CASE("a cancelled call is reported to its handler, and the server waits for the handler") {
  Waiting waiting;
  Served served;
  served.server->on("wait", Runs::own_thread, [&](const auto& call) { waiting.handle(call); });
  const auto client = served.start();
  CallOptions options;
  auto began = waiting.began.get_future();
  options.cancelled = [&] { return began.wait_for(0s) == std::future_status::ready; };
  const auto answer = client->call("wait", "", {}, options);
  CHECK(answer.error().code == Errc::cancelled);
  CHECK(answer.error().message == "stopped");
  CHECK(waiting.cancelled.get_future().wait_for(30s) == std::future_status::ready);
}

TEST_CASE("a handler that waits for the end of its request wakes when the client cancels") {
  Served served;
  std::promise<void> began;
  served.server->on("wait", Runs::own_thread, [&](const auto& call) {
    CHECK_FALSE(call->wait_cancelled(1ms));
    began.set_value();
    CHECK(call->wait_cancelled(30s));
    call->fail({Errc::cancelled, "stopped"});
  });
  const auto client = served.start();
  CallOptions options;
  options.cancelled = [has_begun = std::make_shared<std::future<void>>(began.get_future())] {
    return has_begun->wait_for(0s) == std::future_status::ready;
  };
  CHECK(client->call("wait", "", {}, options).error().message == "stopped");
}

TEST_CASE("a client that closes has its requests cancelled") {
  Waiting waiting;
  Served served;
  served.server->on("wait", Runs::own_thread, [&](const auto& call) { waiting.handle(call); });
  auto client = served.start();
  CallOptions options;
  options.patience = 1ms;
  std::thread calling([&] { CHECK(client->call("wait", "", {}, options).error().code == Errc::timed_out); });
  waiting.began.get_future().wait();
  calling.join();
  client.reset();
  CHECK(waiting.cancelled.get_future().wait_for(30s) == std::future_status::ready);
}

TEST_CASE("a server that ends waits for what runs, then cancels it") {
  Waiting waiting;
  std::promise<void> brief_began, go;
  Served served;
  served.server->on("wait", Runs::own_thread, [&](const auto& call) { waiting.handle(call); });
  served.server->on("brief", Runs::own_thread, [&](const std::shared_ptr<Call>& call) {
    brief_began.set_value();
    go.get_future().wait();
    call->answer("");
  });
  const auto client = served.start();
  auto brief = std::async(std::launch::async, [&] { return client->call("brief", "").ok(); });
  auto longer = std::async(std::launch::async, [&] { return client->call("wait", "").error().code; });
  waiting.began.get_future().wait();
  brief_began.get_future().wait();
  auto drained = std::async(std::launch::async, [&] { return served.server->drain(2s, 30s); });
  go.set_value();
  CHECK(brief.get());
  CHECK(longer.get() == Errc::cancelled);
  CHECK(drained.get());
  CHECK(client->call("brief", "").error().code == Errc::unreachable);
  CHECK(!Client::connect(served.path).ok());
}

TEST_CASE("a caller may receive an answer later, or never") {
  Served served;
  served.server->on("ask", Runs::at_once, [](const auto& call) { call->answer(number(*call->body().number("n"))); });
  const std::shared_ptr<Client> client = served.start();
  const auto first = Client::begin(client, "ask", number(1));
  REQUIRE(first);
  int begun = 0;
  for (int i = 0; i < 100; ++i) begun += Client::begin(client, "ask", number(2)) ? 1 : 0;
  CHECK(begun == 15);
  const auto again = client->call("ask", number(3));
  REQUIRE(again.ok());
  CHECK(*again->body.number("n") == 3);
  const auto answer = first->take();
  REQUIRE(answer.ok());
  CHECK(*answer->body.number("n") == 1);
  CHECK(Client::begin(client, "ask", number(4)));  // an answer that nobody received is discarded
}

TEST_CASE("the number of calls in flight is bounded, and all fail when the daemon ends") {
  Served served;
  std::mutex mutex;
  std::vector<std::shared_ptr<Call>> calls;
  served.server->on("wait", Runs::at_once, [&](const std::shared_ptr<Call>& call) {
    const std::lock_guard lock(mutex);
    calls.push_back(call);
  });
  const std::shared_ptr<Client> client = served.start();
  std::vector<std::unique_ptr<Client::Begun>> begun;
  while (auto next = Client::begin(client, "wait", "")) begun.push_back(std::move(next));
  CHECK(begun.size() == 16);
  while (true) {
    const std::lock_guard lock(mutex);
    if (calls.size() == begun.size()) break;
  }
  calls.clear();
  served.server.reset();
  for (const auto& one : begun) CHECK(!one->take().ok());
  CHECK(!Client::begin(client, "wait", ""));
}

TEST_CASE("the end of a daemon fails waiting calls, and a link connects to the next daemon") {
  std::promise<void> began;
  Served served;
  served.server->on("wait", Runs::own_thread, [&](const std::shared_ptr<Call>& call) {
    began.set_value();
    call->next(30s).ok();
  });
  static_cast<void>(served.start());
  Link link(served.path);
  auto client = link.client();
  REQUIRE(client.ok());
  auto answer = std::async(std::launch::async, [&] { return (*client)->call("wait", "").error().code; });
  began.get_future().wait();
  served.server.reset();
  const Errc code = answer.get();
  CHECK((code == Errc::unreachable || code == Errc::internal));
  served.server = std::move(Server::listen(served.path, {})).value();
  served.server->on("ask", Runs::at_once, [](const auto& call) { call->answer(""); });
  served.server->start();
  bool answered = false;
  for (int i = 0; i < 1000 && !answered; ++i) {
    auto again = link.client();
    answered = again.ok() && (*again)->call("ask", "").ok();
    if (!answered) std::this_thread::sleep_for(10ms);
  }
  CHECK(answered);
}

TEST_CASE("the observer receives each call's name and outcome") {
  testing::TempDir dir;
  std::mutex mutex;
  std::multiset<std::string> told;
  ServerOptions options;
  options.observe = [&](std::string_view name, std::chrono::nanoseconds took, bool failed) {
    const std::lock_guard lock(mutex);
    CHECK(took.count() >= 0);
    told.insert(std::string(name) + (failed ? " failed" : " done"));
  };
  {
    auto server = std::move(Server::listen(dir / kSocketName, options)).value();
    server->on("ask", Runs::at_once, [](const auto& call) { call->answer(""); });
    server->start();
    auto client = std::move(Client::connect(dir / kSocketName)).value();
    CHECK(client->call("ask", "").ok());
    CHECK(!client->call("made up", "").ok());
    CHECK(server->drain(10s, 0s));
  }
  CHECK(told == std::multiset<std::string>{"ask done", "other failed"});
}

}  // namespace
}  // namespace weft::control
