#include "fuse/kernel/init_exchange.h"

#include <doctest/doctest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include "os/sys.h"

namespace weft {
namespace {

constexpr std::uint64_t kInitUnique = 2;

// A socket pair in place of /dev/fuse: the kernel's end and ours.
struct Device {
  Device() {
    std::array<int, 2> ends{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) == 0);
    kernel = Fd(ends[0]);
    ours = Fd(ends[1]);
  }
  template <class T>
  T take() const {
    T out{};
    REQUIRE(::recv(kernel.get(), &out, sizeof out, MSG_DONTWAIT) == sizeof out);
    return out;
  }
  bool silent() const {
    char byte = 0;
    return ::recv(kernel.get(), &byte, 1, MSG_DONTWAIT) < 0;
  }
  Fd kernel;
  Fd ours;
};

struct InitRequest {
  kernel::InHeader header;
  kernel::InitIn init;
};

struct InitAnswer {
  kernel::OutHeader header;
  kernel::InitOut init;
};

InitRequest init_request(std::uint32_t flags2) {
  InitRequest request{};
  request.header.length = sizeof request;
  request.header.opcode = kernel::kOpInit;
  request.header.unique = kInitUnique;
  request.init.major = 7;
  request.init.minor = 40;
  request.init.flags = kernel::kInitExt;
  request.init.flags2 = flags2;
  return request;
}

// Fills the words as a supervisor does after mounting. They outlive servers.
void mount(InitWords& words, const Device& device, std::uint32_t flags2, std::uint32_t stack_depth) {
  const InitRequest request = init_request(flags2);
  REQUIRE(::send(device.kernel.get(), &request, sizeof request, 0) == sizeof request);
  REQUIRE(keep_init(device.ours.get(), words).ok());
  words.stack_depth = stack_depth;
}

struct OneServer {
  OneServer(InitWords& words, RequestWords& requests) : log(requests), exchange(words, passthrough, log) {}
  // Answers FUSE_INIT as libfuse does.
  void answer_init(const Device& device) {
    InitRequest request{};
    REQUIRE(exchange.read(device.ours.get(), &request, sizeof request) == sizeof request);
    CHECK(request.header.unique == kInitUnique);
    kernel::OutHeader header{sizeof(InitAnswer), 0, kInitUnique};
    kernel::InitOut init{};
    init.major = 7;
    const std::array parts{iovec{&header, sizeof header}, iovec{&init, sizeof init}};
    CHECK(exchange.write(device.ours.get(), parts) == sizeof(InitAnswer));
  }
  Passthrough passthrough;
  RequestLog log;
  InitExchange exchange;
};

bool has_rung(const Bell& bell) {
  pollfd event{bell.fd(), POLLIN, 0};
  return ::poll(&event, 1, 0) == 1;
}

}  // namespace

TEST_CASE("the first server answers the kernel, with passthrough; the next one asks it to send again") {
  const Device device;
  InitWords words{};
  RequestWords requests{};
  mount(words, device, kernel::kPassthroughFlag2 | kernel::kHasResendFlag2, 2);
  CHECK(can_resend(words));
  OneServer first(words, requests);
  CHECK_FALSE(has_rung(first.exchange.answered()));
  first.answer_init(device);
  CHECK(has_rung(first.exchange.answered()));
  const auto answer = device.take<InitAnswer>();
  CHECK(answer.header.unique == kInitUnique);
  CHECK(answer.init.flags2 == kernel::kPassthroughFlag2);
  CHECK(answer.init.stack_depth_max == 2);
  CHECK(device.silent());
  OneServer(words, requests).answer_init(device);
  const auto notice = device.take<kernel::OutHeader>();
  CHECK(notice.error == kernel::kNotifyResend);
  CHECK(notice.unique == 0);
  CHECK(device.silent());
}

TEST_CASE("a first request that is not FUSE_INIT fails, and its caller hears of it") {
  for (const std::uint32_t opcode : {kernel::kOpRead, kernel::kOpForget}) {
    const Device device;
    InitWords words{};
    InitRequest request = init_request(0);
    request.header.opcode = opcode;
    REQUIRE(::send(device.kernel.get(), &request, sizeof request, 0) == sizeof request);
    CHECK(keep_init(device.ours.get(), words).error().code == Errc::unsupported);
    CHECK(words.length == 0);
    if (opcode == kernel::kOpRead) {
      const auto answer = device.take<kernel::OutHeader>();
      CHECK(answer.unique == kInitUnique);
      CHECK(answer.error == -EIO);
    }
    CHECK(device.silent());
  }
}

TEST_CASE("that files open direct are mapped is agreed on where the kernel offers it, once for all servers") {
  for (const std::uint32_t offered : {0U, kernel::kDirectMapsFlag2}) {
    const Device device;
    InitWords words{};
    RequestWords requests{};
    mount(words, device, offered, 0);
    CHECK_FALSE(maps_direct_files(words));
    OneServer(words, requests).answer_init(device);
    const auto answer = device.take<InitAnswer>();
    CHECK(answer.init.flags2 == offered);
    CHECK(((answer.init.flags & kernel::kInitExt) != 0) == (offered != 0));
    CHECK(maps_direct_files(words) == (offered != 0));
  }
}

TEST_CASE("bind mounts may have an id mapping if the mount wants it and the kernel offers it") {
  for (const std::uint32_t offered : {0U, kernel::kIdMapsFlag2})
    for (const std::uint32_t wanted : {0U, 1U}) {
      const Device device;
      InitWords words{};
      RequestWords requests{};
      mount(words, device, offered, 0);
      words.id_maps = wanted;
      OneServer(words, requests).answer_init(device);
      CHECK(device.take<InitAnswer>().init.flags2 == (wanted != 0 ? offered : 0U));
    }
}

TEST_CASE("a later server uses only the features that the first one negotiated") {
  const Device device;
  InitWords words{};
  RequestWords requests{};
  mount(words, device, kernel::kDirectMapsFlag2, 0);
  OneServer(words, requests).answer_init(device);
  words.reply.flags2 = 0;  // the reply of an old program without the flag
  OneServer(words, requests).answer_init(device);
  CHECK_FALSE(maps_direct_files(words));
}

TEST_CASE("the next server answers FUSE_INIT if its predecessor died before the reply") {
  const Device device;
  InitWords words{};
  RequestWords requests{};
  mount(words, device, 0, 0);
  std::array<std::byte, 8192> buffer{};
  OneServer killed(words, requests);
  CHECK(killed.exchange.read(device.ours.get(), buffer.data(), buffer.size()) == sizeof(InitRequest));
  OneServer(words, requests).answer_init(device);
  CHECK(device.take<InitAnswer>().header.unique == kInitUnique);
}

TEST_CASE("without the kernel's offer there is no passthrough, and without resending no notice") {
  const Device device;
  InitWords words{};
  RequestWords requests{};
  mount(words, device, 0, 1);
  CHECK_FALSE(can_resend(words));
  OneServer first(words, requests);
  first.answer_init(device);
  CHECK(device.take<InitAnswer>().init.flags2 == 0);
  CHECK(first.passthrough.reason().find("does not offer") != std::string::npos);
  OneServer(words, requests).answer_init(device);
  CHECK(device.silent());
}

TEST_CASE("other threads wait for FUSE_INIT; requests are logged until they are answered") {
  const Device device;
  InitWords words{};
  RequestWords requests{};
  mount(words, device, 0, 0);
  OneServer server(words, requests);
  InitRequest init{};
  REQUIRE(server.exchange.read(device.ours.get(), &init, sizeof init) == sizeof init);
  const kernel::InHeader request{sizeof request, 15, 8 | kernel::kUniqueResend, 1, 0, 0, 0, 0, 0};
  REQUIRE(::send(device.kernel.get(), &request, sizeof request, 0) == sizeof request);
  std::atomic<bool> got{false};
  std::uint64_t seen = 0;
  std::thread other([&] {
    std::array<std::byte, 8192> buffer{};
    CHECK(server.exchange.read(device.ours.get(), buffer.data(), buffer.size()) == sizeof request);
    seen = current_request();
    got = true;
  });
  CHECK_FALSE(got);
  kernel::OutHeader header{sizeof(InitAnswer), 0, kInitUnique};
  kernel::InitOut reply{};
  const std::array parts{iovec{&header, sizeof header}, iovec{&reply, sizeof reply}};
  CHECK(server.exchange.write(device.ours.get(), parts) > 0);
  other.join();
  CHECK(seen == 8);
  CHECK(server.log.running() == std::vector<std::uint64_t>{8});
  kernel::OutHeader answer{sizeof answer, 0, 8 | kernel::kUniqueResend};
  const std::array one{iovec{&answer, sizeof answer}};
  CHECK(server.exchange.write(device.ours.get(), one) == sizeof answer);
  CHECK(server.log.running().empty());
  CHECK(server.log.finished() == 1);
}

TEST_CASE("a first request that is not FUSE_INIT is refused") {
  const Device device;
  InitWords words{};
  const kernel::InHeader request{sizeof request, 15, 8, 1, 0, 0, 0, 0, 0};
  REQUIRE(::send(device.kernel.get(), &request, sizeof request, 0) == sizeof request);
  CHECK_FALSE(keep_init(device.ours.get(), words).ok());
}

TEST_CASE("the log of requests holds what runs, and no more than it can") {
  RequestWords words{};
  RequestLog log(words);
  for (std::uint64_t request = 2; request <= 2 * (kRunningMax + 10); request += 2) log.begin(request, kernel::kOpRead);
  CHECK(log.running().size() == kRunningMax);
  for (std::uint64_t request = 2; request <= 2 * (kRunningMax + 10); request += 2) log.end(request);
  CHECK(log.running().empty());
  CHECK(log.begun() == log.finished());
  log.begin(2, kernel::kOpWrite);
  CHECK(log.reads() == kRunningMax + 10);
  CHECK(log.writes() == 1);
}

TEST_CASE("the log of requests has the times of those that were answered, by kind") {
  RequestWords words{};
  RequestLog log(words);
  const auto count = [&log](std::size_t kind) {
    const MountRequests requests = log.answered().at(kind);
    return std::accumulate(requests.took.begin(), requests.took.end(), std::uint64_t{0});
  };
  constexpr std::size_t kRead = 0, kOpen = 2, kOther = kRequestKinds.size() - 1;
  log.begin(2, kernel::kOpRead);
  log.begin(4, kernel::kOpOpen);
  log.begin(6, 4242);
  log.begin(8, kernel::kOpPoll);
  CHECK(count(kRead) == 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  log.end(2);
  log.end(6);
  log.set_aside(8);
  log.end(8);  // its answer comes later, and does not count
  CHECK(count(kRead) == 1);
  CHECK(count(kOpen) == 0);
  CHECK(count(kOther) == 1);
  CHECK(log.answered()[kRead].kind == "read");
  CHECK(log.answered()[kRead].nanoseconds >= 2'000'000);
  CHECK(log.answered()[kRead].took[0] == 0);
  CHECK(log.running() == std::vector<std::uint64_t>{4});
}

}  // namespace weft
