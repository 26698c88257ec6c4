#include "http/server.h"

#include <dirent.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/limits.h"
#include "raw_client.h"
#include "testing.h"

namespace weft {
namespace {

using namespace std::string_view_literals;
using testing::body_of;
using testing::must;
using testing::RawClient;

std::unique_ptr<HttpServer> serve(HttpServer::Handler handler) {
  return must(HttpServer::open({.patience = std::chrono::minutes(10)}, std::move(handler)));
}

// Returns true for an answer that refuses the request, and if the server has closed the connection without one.
bool is_refusal(std::string_view answer) {
  return answer.empty() ||
         (answer.starts_with("HTTP/1.") && answer.size() > 9 && (answer[9] == '4' || answer[9] == '5'));
}

bool has(std::string_view answer, std::string_view line) {
  return answer.find("\r\n" + std::string(line) + "\r\n") < answer.find("\r\n\r\n") + 2;
}

// Answers with the path and counts the requests.
struct Echo {
  mutable std::atomic<int> requests = 0;
  std::unique_ptr<HttpServer> server = serve([this](const HttpRequest& request) {
    ++requests;
    return http_text(200, request.path.text);
  });
  RawClient client() const { return RawClient(server->port()); }
};

TEST_CASE("GET, HEAD and other methods") {
  const Echo echo;
  RawClient client = echo.client();
  const std::string get = client.ask("GET", "/a%20b?c=d");
  CHECK(get.starts_with("HTTP/1.1 200 "));
  CHECK(has(get, "Content-Length: 4"));
  CHECK(has(get, "Content-Type: text/plain; charset=utf-8"));
  CHECK(body_of(get) == "/a b");
  const std::string head = client.ask("HEAD", "/a%20b");
  CHECK(head.starts_with("HTTP/1.1 200 "));
  CHECK(has(head, "Content-Length: 4"));
  CHECK(body_of(client.ask("GET", "/after")) == "/after");  // so HEAD sent no body
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "TRACE", "get", "X"}) {
    CAPTURE(method);
    RawClient other = echo.client();
    other.send(RawClient::request(method, "/a"));
    const std::string answer = other.all();  // the server closes the connection
    CHECK(answer.starts_with("HTTP/1.1 405 "));
    CHECK(has(answer, "Allow: GET, HEAD"));
  }
  CHECK(echo.requests == 3);
}

TEST_CASE("requests follow each other on a connection, also before the answers") {
  const Echo echo;
  RawClient client = echo.client();
  for (int i = 0; i < 3; ++i) CHECK(body_of(client.ask("GET", "/kept")) == "/kept");
  CHECK(client.send(RawClient::request("GET", "/1") + RawClient::request("HEAD", "/2") +
                    RawClient::request("GET", "/3")));
  CHECK(body_of(client.answer()) == "/1");
  CHECK(body_of(client.answer(true)).empty());
  CHECK(body_of(client.answer()) == "/3");
  CHECK(client.send(RawClient::request("GET", "/last", "Connection: close\r\n")));
  CHECK(body_of(client.all()) == "/last");
}

TEST_CASE("a request with a body is refused, and its body is not read as a request") {
  const Echo echo;
  for (const char* fields :
       {"Content-Length: 30\r\n", "Content-Length: 99999999999\r\n", "Transfer-Encoding: chunked\r\n"}) {
    CAPTURE(fields);
    RawClient client = echo.client();
    client.send(RawClient::request("GET", "/a", fields));
    CHECK(client.all().starts_with("HTTP/1.1 413 "));
  }
  // libmicrohttpd 1.0 refuses some of these itself.
  for (const char* fields :
       {"Transfer-Encoding:\r\n", "transfer-encoding: x\r\n", "Content-Length: 0\r\nCONTENT-LENGTH: 30\r\n"}) {
    CAPTURE(fields);
    RawClient client = echo.client();
    client.send(RawClient::request("GET", "/a", fields) + RawClient::request("GET", "/b"));
    CHECK(is_refusal(client.all()));
  }
  CHECK(body_of(echo.client().ask("GET", "/none", "Content-Length: 0\r\n")) == "/none");
  CHECK(echo.requests == 1);
}

TEST_CASE("a bad path is refused before the handler") {
  const Echo echo;
  for (const char* path :
       {"/%00", "/a%00b", "/..", "/a/../b", "/%2e%2e/b", "/a%2f..%2fb", "/%zz", "/%", "a", "http://h/a"}) {
    CAPTURE(path);
    CHECK(echo.client().ask("GET", path).starts_with("HTTP/1.1 400 "));
  }
  const std::string longest = "/" + std::string(limits::kHttpPathMax - 1, 'a');
  CHECK(body_of(echo.client().ask("GET", longest)) == longest);
  CHECK(echo.client().ask("GET", longest + "a").starts_with("HTTP/1.1 414 "));
  CHECK(echo.requests == 1);
}

// libmicrohttpd 0.9 ends the path at a NUL, 1.0 closes the connection.
TEST_CASE("a NUL in the request line does not reach the handler") {
  const Echo echo;
  RawClient client = echo.client();
  client.send("GET /a\0b HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"sv);
  const std::string answer = client.all();
  CHECK((is_refusal(answer) || body_of(answer) == "/a"));
}

// The server stops reading, so the connection may be reset before the client has read the answer.
TEST_CASE("a header or a request line of 64 KiB is refused before the handler") {
  const Echo echo;
  const std::string much(64U << 10U, 'x');
  for (const std::string& request :
       {RawClient::request("GET", "/a", "X: " + much + "\r\n"), RawClient::request("GET", "/" + much)}) {
    RawClient client = echo.client();
    client.send(request);
    CHECK(is_refusal(client.all()));
  }
  std::string fields;
  for (int i = 0; i < 8'000; ++i) fields += "X: y\r\n";
  RawClient client = echo.client();
  client.send(RawClient::request("GET", "/a", fields));
  CHECK(is_refusal(client.all()));
  CHECK(echo.requests == 0);
  CHECK(body_of(echo.client().ask("GET", "/a")) == "/a");
}

TEST_CASE("lines that are no request get no answer of the handler") {
  const Echo echo;
  for (const char* text : {"\r\n\r\n\r\n", "GET\r\n\r\n", "GET /\r\n\r\n", "GET / HTTP/9.9\r\n\r\n",
                           "\x16\x03\x01 / \r\n\r\n", "GET / HTTP/1.1\r\nno colon\r\n\r\n"}) {
    CAPTURE(text);
    RawClient client = echo.client();
    client.send(text);
    // Ends the connection if the server still waits for the rest of a request.
    client.send(RawClient::request("POST", "/"));
    CHECK(is_refusal(client.all()));
  }
  CHECK(echo.requests == 0);
}

// A file with bytes that differ from place to place, and a server that answers with its parts.
struct Files {
  static constexpr std::size_t kSize = 5'000'000;
  testing::TempDir dir;
  const std::vector<std::byte> content = testing::random_bytes(kSize, 7);
  std::unique_ptr<HttpServer> server;

  Files() {
    testing::write_file(dir / "file", testing::as_text(content));
    server = serve([this](const HttpRequest& request) { return reply(request); });
  }
  HttpReply reply(const HttpRequest& request) const {
    const HttpPart part = request.part_of(kSize, "\"e\"");
    HttpReply reply = http_part_reply(part);
    reply.fields.emplace_back("ETag", "\"e\"");
    if (part.kind == HttpPart::Kind::unsatisfiable) return reply;
    Fd fd = request.method == HttpRequest::Method::head ? Fd() : must(open_file(dir / "file", O_RDONLY));
    reply.body = HttpFile{std::move(fd), part.offset, part.length};
    return reply;
  }
  std::string bytes(std::size_t offset, std::size_t length) const {
    return std::string(testing::as_text(content).substr(offset, length));
  }
};

TEST_CASE("a file is sent whole and in ranges") {
  const Files files;
  RawClient client(files.server->port());
  const std::string whole = client.ask("GET", "/f");
  CHECK(whole.starts_with("HTTP/1.1 200 "));
  CHECK(has(whole, "Accept-Ranges: bytes"));
  CHECK(body_of(whole) == files.bytes(0, Files::kSize));
  const std::string head = client.ask("HEAD", "/f", "Range: bytes=1-2\r\n");
  CHECK(head.starts_with("HTTP/1.1 200 "));
  CHECK(has(head, "Content-Length: 5000000"));
  CHECK(has(head, "ETag: \"e\""));
  const std::string middle = client.ask("GET", "/f", "Range: bytes=1000001-4000000\r\n");
  CHECK(middle.starts_with("HTTP/1.1 206 "));
  CHECK(has(middle, "Content-Range: bytes 1000001-4000000/5000000"));
  CHECK(body_of(middle) == files.bytes(1'000'001, 3'000'000));
  CHECK(body_of(client.ask("GET", "/f", "Range: bytes=-5\r\n")) == files.bytes(Files::kSize - 5, 5));
  CHECK(body_of(client.ask("GET", "/f", "Range: bytes=4999999-\r\n")) == files.bytes(Files::kSize - 1, 1));
  const std::string past = client.ask("GET", "/f", "Range: bytes=5000000-\r\n");
  CHECK(past.starts_with("HTTP/1.1 416 "));
  CHECK(has(past, "Content-Range: bytes */5000000"));
  const std::string several = client.ask("GET", "/f", "Range: bytes=0-1,3-4\r\n");
  CHECK(several.starts_with("HTTP/1.1 200 "));
  CHECK(body_of(several).size() == Files::kSize);
  CHECK(client.ask("GET", "/f", "Range: bytes=0-1\r\nIf-Range: \"other\"\r\n").starts_with("HTTP/1.1 200 "));
}

TEST_CASE("a content is read while it is sent, and an error closes the connection") {
  constexpr std::size_t kSize = 3'000'000;
  const std::vector<std::byte> bytes = testing::random_bytes(kSize, 8);
  const auto server = serve([&](const HttpRequest& request) {
    HttpReply reply;
    const std::size_t whole = request.path.text == "/cut" ? 1'000'000 : kSize;
    reply.body = HttpContent{kSize, [&bytes, whole](std::uint64_t offset, std::span<std::byte> out) {
                               const std::size_t count = std::min<std::size_t>({out.size(), whole - offset, 70'001});
                               std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(offset), count, out.begin());
                               return Result<std::size_t>(count);
                             }};
    return reply;
  });
  RawClient client(server->port());
  const std::string head = client.ask("HEAD", "/");
  CHECK(has(head, "Content-Length: 3000000"));
  CHECK(body_of(client.ask("GET", "/")) == testing::as_text(bytes));
  RawClient other(server->port());
  other.send(RawClient::request("GET", "/cut"));
  const std::string cut = other.all();
  CHECK(cut.starts_with("HTTP/1.1 200 "));
  CHECK(body_of(cut) == testing::as_text(bytes).substr(0, 1'000'000));
}

TEST_CASE("what an answer keeps lives until its file is sent") {
  const testing::TempDir dir;
  testing::write_file(dir / "file", "bytes");
  std::weak_ptr<const int> kept;
  const auto server = serve([&](const HttpRequest&) {
    const auto keeper = std::make_shared<const int>(1);
    kept = keeper;
    HttpReply reply;
    reply.body = HttpFile{must(open_file(dir / "file", O_RDONLY)), 0, 5, keeper};
    return reply;
  });
  RawClient client(server->port());
  client.send(RawClient::request("GET", "/", "Connection: close\r\n"));
  CHECK(body_of(client.all()) == "bytes");
  for (int i = 0; i < 10'000 && !kept.expired(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  CHECK(kept.expired());
}

TEST_CASE("a server that takes bodies gives those of POST to the handler") {
  const auto server = must(
      HttpServer::open({.patience = std::chrono::minutes(10), .body_max = 100'000}, [](const HttpRequest& request) {
        std::string text(request.method == HttpRequest::Method::post ? "POST" : "GET");
        for (const auto& [name, value] : request.arguments) text += fmt::format(" {}={}", name, value);
        return http_text(200, text + ' ' + request.body);
      }));
  RawClient client(server->port());
  CHECK(body_of(client.ask("GET", "/?a=1&b=%26+%2B&c")) == "GET a=1 b=& + c= ");
  client.send(RawClient::request("POST", "/?x=y", "Content-Length: 3\r\n") + "abc");
  CHECK(body_of(client.answer()) == "POST x=y abc");
  const std::string longest(100'000, 'z');
  client.send(RawClient::request("POST", "/", "Content-Length: 100000\r\n") + longest);
  CHECK(body_of(client.answer()) == "POST " + longest);
  client.send(RawClient::request("POST", "/", "Content-Length: 0\r\n"));
  CHECK(body_of(client.answer()) == "POST ");
  CHECK(client.ask("GET", "/?a=%zz").starts_with("HTTP/1.1 400 "));
  for (const auto& row : std::vector<std::array<std::string, 3>>{{"413", "POST", "Content-Length: 100001\r\n"},
                                                                 {"411", "POST", ""},
                                                                 {"411", "POST", "Transfer-Encoding: chunked\r\n"},
                                                                 {"413", "GET", "Content-Length: 3\r\n"},
                                                                 {"405", "PUT", "Content-Length: 3\r\n"}}) {
    const std::string& method = row[1];
    const std::string& fields = row[2];
    CAPTURE(method);
    CAPTURE(fields);
    RawClient other(server->port());
    other.send(RawClient::request(method, "/", fields));
    CHECK(other.all().starts_with("HTTP/1.1 " + row[0] + " "));
  }
}

TEST_CASE("an answer that cannot be sent is 500") {
  const testing::TempDir dir;
  testing::write_file(dir / "file", "short");
  const auto server = serve([&](const HttpRequest& request) {
    HttpReply reply;
    if (request.path.text == "/field") reply.fields.emplace_back("X", "a\r\nY: b");
    const std::uint64_t offset = request.path.text == "/offset" ? 6 : 0;
    const std::uint64_t length = request.path.text == "/length" ? 6 : 5;
    reply.body = HttpFile{must(open_file(dir / "file", O_RDONLY)), offset, length};
    return reply;
  });
  RawClient client(server->port());
  CHECK(body_of(client.ask("GET", "/")) == "short");
  for (const char* path : {"/field", "/offset", "/length"}) {
    CAPTURE(path);
    CHECK(client.ask("GET", path).starts_with("HTTP/1.1 500 "));
  }
}

TEST_CASE("a handler that waits sees that its client has left, and that the server ends") {
  std::mutex mutex;
  std::promise<void> begun, left;
  const auto wait = [](const HttpRequest& request) {
    while (!request.cancelled()) std::this_thread::yield();
  };
  auto server = serve([&](const HttpRequest& request) {
    {
      const std::lock_guard lock(mutex);
      begun.set_value();
    }
    wait(request);
    const std::lock_guard lock(mutex);
    left.set_value();
    return http_text(200, "late");
  });
  RawClient first(server->port());
  first.send(RawClient::request("GET", "/"));
  begun.get_future().wait();
  {
    const std::lock_guard lock(mutex);
    begun = {};
  }
  first.close();
  left.get_future().wait();
  {
    const std::lock_guard lock(mutex);
    left = {};
  }
  RawClient second(server->port());
  second.send(RawClient::request("GET", "/"));
  begun.get_future().wait();
  server.reset();
  left.get_future().wait();
  second.all();  // returns: the connection has ended
}

int descriptors_that_programs_inherit() {
  int count = 0;
  DIR* const list = ::opendir("/proc/self/fd");
  REQUIRE(list != nullptr);
  while (const dirent* entry = ::readdir(list)) {
    const int flags = ::fcntl(static_cast<int>(std::strtol(entry->d_name, nullptr, 10)),
                              F_GETFD);  // of . and .. that of descriptor 0, before and after
    count += flags >= 0 && (flags & FD_CLOEXEC) == 0 ? 1 : 0;
  }
  ::closedir(list);
  return count;
}

TEST_CASE("handlers get no signals of the program, and programs no descriptors of the server") {
  const int before = descriptors_that_programs_inherit();
  sigset_t mask{};
  int within = 0;
  auto server = serve([&](const HttpRequest&) {
    ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    within = descriptors_that_programs_inherit();
    return http_text(200, "");
  });
  RawClient client(server->port());
  CHECK(client.ask("GET", "/").starts_with("HTTP/1.1 200 "));
  server.reset();
  CHECK(within == before);
  CHECK(::sigismember(&mask, SIGTERM) == 1);
  CHECK(::sigismember(&mask, SIGHUP) == 1);
  CHECK(::sigismember(&mask, SIGBUS) == 0);
}

TEST_CASE("a port that is taken and a name as the address are refused with the name of the port") {
  const Echo echo;
  const auto taken = HttpServer::open({.port = echo.server->port(), .name = "some_port"}, {});
  REQUIRE_FALSE(taken.ok());
  CHECK(taken.error().message == "some_port: Address already in use");
  CHECK(HttpServer::open({.address = "localhost"}, {}).error().code == Errc::invalid);
}

}  // namespace
}  // namespace weft
