#include "os/unix_socket.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <thread>

#include "socket_pair.h"
#include "testing.h"

namespace weft {
namespace {

using testing::must;

TEST_CASE("a path longer than an address of a socket can be listened at and connected to") {
  const testing::TempDir dir;
  const std::string deep = dir / std::string(90, 'd') + "/" + std::string(90, 'e');
  REQUIRE(make_directories(deep).ok());
  const std::string path = deep + "/s.sock";
  CHECK(connect_unix(path).error().code == Errc::not_found);
  auto listener = listen_unix(path, 0600);
  REQUIRE(listener.ok());
  auto client = connect_unix(path);
  REQUIRE(client.ok());
  auto server = accept_socket(listener->get());
  REQUIRE(server.ok());
  REQUIRE(server->valid());
  CHECK(!accept_socket(listener->get())->valid());
  auto peer = peer_credentials(server->get());
  REQUIRE(peer.ok());
  CHECK(peer->pid == ::getpid());
  CHECK(peer->uid == ::geteuid());
  CHECK(peer->gid == ::getegid());
}

TEST_CASE("a socket without a listener is Errc::unreachable, and a new listener replaces it") {
  const testing::TempDir dir;
  const std::string path = dir / "s.sock";
  { REQUIRE(listen_unix(path, 0600).ok()); }
  CHECK(connect_unix(path).error().code == Errc::unreachable);
  auto listener = listen_unix(path, 0600);
  REQUIRE(listener.ok());
  CHECK(connect_unix(path).ok());
}

TEST_CASE("a TCP listener has a free port, and only of an address in digits") {
  for (const char* address : {"127.0.0.1", "::1"}) {
    const auto listener = listen_tcp(address, 0, 1, "where");
    if (!listener.ok() && std::string_view(address) == "::1") continue;  // a machine without IPv6
    REQUIRE(listener.ok());
    CHECK(must(bound_port(listener->get(), "where")) != 0);
    CHECK(!accept_socket(listener->get())->valid());
    const int flags = ::fcntl(listener->get(), F_GETFD);
    CHECK((flags & FD_CLOEXEC) != 0);
  }
  const auto refused = listen_tcp("localhost", 0, 1, "where");
  CHECK(refused.error().code == Errc::invalid);
  CHECK(refused.error().message == "where: expected an IP address, got localhost");
}

TEST_CASE("a TCP connection counts what the other end has acknowledged, and ends without its descriptor") {
  const auto listener = must(listen_tcp("127.0.0.1", 0, 1, "where"));
  const Fd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(must(bound_port(listener.get(), "where")));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(::connect(client.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  REQUIRE(wait_for(listener.get(), POLLIN, std::chrono::seconds(60)));
  const Fd server = must(accept_socket(listener.get()));
  const std::uint64_t before = bytes_acknowledged(server.get());
  CHECK(must(send_some(server.get(), testing::as_bytes("hello"))) == 5);
  while (bytes_acknowledged(server.get()) < before + 5) std::this_thread::yield();
  CHECK(bytes_acknowledged(server.get()) == before + 5);
  CHECK(bytes_written(server.get()) == 5);
  hang_up(server.get());
  std::array<char, 16> bytes{};
  CHECK(::recv(client.get(), bytes.data(), bytes.size(), 0) == 5);
  CHECK(::recv(client.get(), bytes.data(), bytes.size(), 0) == 0);
  CHECK(::fcntl(server.get(), F_GETFD) >= 0);
}

TEST_CASE("a thread that is made while signals are blocked gets only those of its faults") {
  sigset_t before;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &before);
  sigset_t inside;
  {
    const SignalsBlocked blocked;
    std::thread([&inside] { ::pthread_sigmask(SIG_SETMASK, nullptr, &inside); }).join();
  }
  CHECK(::sigismember(&inside, SIGTERM) == 1);
  CHECK(::sigismember(&inside, SIGHUP) == 1);
  CHECK(::sigismember(&inside, SIGBUS) == 0);
  sigset_t after;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &after);
  CHECK(::sigismember(&after, SIGTERM) == ::sigismember(&before, SIGTERM));
}

TEST_CASE("descriptors arrive with the bytes they were sent with") {
  const testing::TempDir dir;
  testing::write_file(dir / "file", "hello");
  auto file = open_file(dir / "file", O_RDONLY);
  const auto [ours, theirs] = testing::socket_pair();
  const std::array fds = {file->get(), file->get()};
  REQUIRE(send_some(ours.get(), testing::as_bytes("ab")).ok());
  REQUIRE(send_some(ours.get(), testing::as_bytes("cd"), fds).ok());
  std::string text;
  std::vector<Fd> got;
  while (text.size() < 4) {
    REQUIRE(wait_for(theirs.get(), POLLIN, std::chrono::seconds(10)));
    std::array<std::byte, 16> bytes{};
    auto received = receive_some(theirs.get(), bytes);
    REQUIRE(received.ok());
    text += testing::as_text(std::span(bytes).first(received->bytes));
    for (Fd& fd : received->fds) got.push_back(std::move(fd));
  }
  CHECK(text == "abcd");
  REQUIRE(got.size() == 2);
  std::array<std::byte, 5> content{};
  REQUIRE(read_exact(got[1].get(), 0, content, "sent").ok());
  CHECK(testing::as_text(content) == "hello");
}

TEST_CASE("a closed peer and an empty socket are distinguished") {
  auto [ours, theirs] = testing::socket_pair();
  std::array<std::byte, 4> bytes{};
  CHECK(receive_some(ours.get(), bytes)->later);
  theirs.reset();
  CHECK(receive_some(ours.get(), bytes)->end);
  CHECK(send_some(ours.get(), testing::as_bytes("x")).error().code == Errc::unreachable);
}

}  // namespace
}  // namespace weft
