#include "os/unix_socket.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>

#include "socket_pair.h"
#include "testing.h"

namespace weft {
namespace {

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
  auto server = accept_unix(listener->get());
  REQUIRE(server.ok());
  REQUIRE(server->valid());
  CHECK(!accept_unix(listener->get())->valid());
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
