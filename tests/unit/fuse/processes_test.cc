// Parts of the supervisor: messages to servers, their start and end, requests for upgrades.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <thread>

#include "fuse/process/channel.h"
#include "fuse/process/server_process.h"
#include "fuse/process/upgrade_door.h"
#include "testing.h"

namespace weft {
namespace {

using std::chrono::milliseconds;

Launcher forking(std::function<int(const ServerEnds&)> work) {
  return [work = std::move(work)](const ServerEnds& ends) -> Result<pid_t> {
    const pid_t pid = ::fork();
    if (pid == 0) ::_exit(work(ends));
    return pid;
  };
}

Fd knock(const std::string& name) {
  Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  REQUIRE(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) == 0);
  return socket;
}

}  // namespace

TEST_CASE("messages arrive whole, with the device; an end that is gone is seen") {
  auto ends = make_channel();
  REQUIRE(ends.ok());
  const testing::TempDir dir;
  testing::write_file(dir / "device", "text");
  const auto file = open_file(dir / "device", O_RDONLY);
  REQUIRE(say(ends->supervisor.get(), Say::device, "here", file->get()).ok());
  REQUIRE(say(ends->supervisor.get(), Say::stop).ok());
  const auto first = hear(ends->server.get());
  REQUIRE((first.ok() && first->has_value()));
  CHECK((*first)->what == Say::device);
  CHECK((*first)->text == "here");
  CHECK(stat_fd((*first)->device.get(), "device")->st_size == 4);
  const auto second = hear(ends->server.get());
  CHECK((*second)->what == Say::stop);
  CHECK_FALSE((*second)->device.valid());
  ends->supervisor.reset();
  CHECK_FALSE(hear(ends->server.get())->has_value());
  CHECK_FALSE(say(ends->server.get(), Say::ready).ok());
}

TEST_CASE("a server's messages and its end reach who started it") {
  const auto server = ServerProcess::start(
      forking([](const ServerEnds& ends) { return say(ends.channel, Say::opened).ok() ? 7 : 1; }), -1, -1);
  REQUIRE(server.ok());
  CHECK((*hear(server->channel()))->what == Say::opened);
  const auto status = server->wait(kServerEndPatience);
  REQUIRE(status.has_value());
  CHECK(describe_end(*status) == "ended with exit code 7");
}

TEST_CASE("a server that is killed") {
  const auto server = ServerProcess::start(forking([](const ServerEnds&) {
                                             ::pause();
                                             return 0;
                                           }),
                                           -1, -1);
  REQUIRE(server.ok());
  CHECK_FALSE(server->wait(milliseconds(0)).has_value());
  CHECK_FALSE(server->traced());
  server->kill();
  const auto status = server->wait(kServerEndPatience);
  REQUIRE(status.has_value());
  CHECK(describe_end(*status) == "was killed by SIGKILL");
}

TEST_CASE("a program that cannot be run says why") {
  const testing::TempDir dir;
  MountOptions options;
  options.store = options.directory = dir.path();
  const auto state = open_file("/dev/null", O_RDWR);
  const auto server = ServerProcess::start(exec_launcher(dir / "none", options), state->get(), -1);
  REQUIRE(server.ok());
  const auto message = hear(server->channel());
  REQUIRE((message.ok() && message->has_value()));
  CHECK((*message)->what == Say::failed);
  CHECK((*message)->text.find(dir / "none") != std::string::npos);
  CHECK(server->wait(kServerEndPatience).has_value());
}

TEST_CASE("an upgrade request names a program and receives a reply") {
  const auto door = UpgradeDoor::make();
  REQUIRE(door.ok());
  const auto name = door->name();
  REQUIRE(name.ok());
  CHECK_FALSE(door->answer().has_value());  // no client
  const Fd client = knock(*name);
  REQUIRE(::send(client.get(), "/sbin/x", 7, 0) == 7);
  const auto request = door->answer();
  REQUIRE(request.has_value());
  CHECK(request->program == "/sbin/x");
  reply_upgrade(request->client.get(), "no");
  char answer[16] = {};
  CHECK(::recv(client.get(), answer, sizeof answer, 0) == 2);
  CHECK(std::string(answer) == "no");
  const Fd silent = knock(*name);
  CHECK_FALSE(door->answer().has_value());  // gives up after a second
  const Fd relative = knock(*name);
  REQUIRE(::send(relative.get(), "x", 1, 0) == 1);
  CHECK_FALSE(door->answer().has_value());
}

}  // namespace weft
